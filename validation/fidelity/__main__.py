"""Runs the study: ``python -m retouch.validation.fidelity --out DIR``."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import track

from retouch.bundle import Bundle
from retouch.export import export_onnx
from retouch.validation.fidelity import Study, draw_shift, markdown, run_study
from retouch.validation.reference_models import terrain


def main(
    out: Annotated[Path, typer.Option(help="Where the bundle, the table and the picture go.")] = Path("out/fidelity"),
    terrains: Annotated[int, typer.Option(min=2, help="How many terrains are edited.")] = 12,
    threads: Annotated[int, typer.Option(min=1, help="Threads of ONNX Runtime.")] = 2,
) -> None:
    """Fidelity of edits under every region policy and mode of GroupNorm on the trained terrain model."""
    out.mkdir(parents=True, exist_ok=True)
    path = out / "bundle"
    bundle = Bundle.open(path) if path.exists() else export_onnx(terrain(), path)
    study = Study(terrains)
    samples = list(track(run_study(bundle, study, threads=threads), "edits", total=len(study)))
    table = markdown(study, samples)
    (out / "samples.json").write_text(json.dumps([asdict(sample) for sample in samples], indent=1))
    (out / "fidelity.md").write_text(table + "\n")
    draw_shift(out / "shift.png", study, samples)
    typer.echo(table)


if __name__ == "__main__":
    typer.run(main)
