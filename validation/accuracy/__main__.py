"""Validates the trained terrain model: ``python -m retouch.validation.accuracy --out DIR``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.console import Console

from retouch import Bundle, EditSession
from retouch.export import export_onnx
from retouch.validation.accuracy import ValidationOptions, validate, write_report
from retouch.validation.terrain import FloatArray, draw_noise, terrain, terrain_feeds

_SIGMA_NEW, _SIGMA = 80.0, 0.4
_DIFFICULTY = 50
_PEAK = 2.0


def main(
    out: Annotated[Path, typer.Option(help="Where bundle, feeds and report go.")] = Path("out/validation"),
    threads: Annotated[int, typer.Option(min=1, help="Threads of ONNX Runtime.")] = 1,
) -> None:
    """Validates the trained terrain model on a terrain whose noise is redrawn in regions."""
    out.mkdir(parents=True, exist_ok=True)
    console = Console()
    with console.status("export") as status:
        bundle = export_onnx(terrain(), out / "terrain.bundle", tell=lambda step: status.update(f"export: {step}"))
        np.savez(out / "terrain.npz", **_feeds(bundle, threads))  # type: ignore[arg-type] # mypy misreads **
        options = ValidationOptions(feeds=out / "terrain.npz", original=terrain(), peak=_PEAK, threads=threads)
        validation = validate(bundle, options, status.update)
        write_report(validation, out / "report", status.update)
    console.print(f"{'passed' if validation.figures.passed else 'FAILED'}, see {out / 'report' / 'report.html'}")
    if not validation.figures.passed:
        raise typer.Exit(1)


def _feeds(bundle: Bundle, threads: int) -> dict[str, FloatArray]:
    """A terrain at a middling noise level, and the same with its noise drawn anew."""
    with EditSession(bundle, threads=threads) as session:
        new = terrain_feeds(draw_noise(7), sigma=_SIGMA_NEW, difficulty=_DIFFICULTY)
        source = np.array(session.base(new, record=False).outputs["denoised"])
    base, other = (
        terrain_feeds(draw_noise(seed), sigma=_SIGMA, difficulty=_DIFFICULTY, source=source) for seed in (3, 4)
    )
    return {**base, "edit.noisy": other["noisy"]}


if __name__ == "__main__":
    typer.run(main)
