"""Makes many edits and watches memory: ``python -m retouch.validation.soak``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from retouch.export import ExportOptions, export_onnx
from retouch.session import EditSession
from retouch.validation.reference_models import export_reference
from retouch.validation.soak import growth, soak

_MOST = 0.02


def main(
    build: Annotated[Path, typer.Option(help="Where the model and its bundle are kept.")] = Path("build/soak"),
    edits: Annotated[int, typer.Option(min=8, help="How many edits.")] = 20_000,
) -> None:
    """Edits of a tiny UNet; exits with 1 if memory grows by more than 2 % after the first quarter of them."""
    bundle = build / "bundle"
    if not bundle.is_dir():
        export_onnx(export_reference("ddpm_unet_tiny", build), bundle, ExportOptions())
    with EditSession(bundle, threads=1) as session:
        samples = []
        for sample in soak(session, edits):
            samples.append(sample)
            typer.echo(f"{sample.edits:>7} edits  {sample.nbytes / 2**20:8.1f} MiB")
    grown = growth(samples)
    typer.echo(f"growth from the second quarter to the last: {grown:+.2%}")
    raise typer.Exit(grown > _MOST)


if __name__ == "__main__":
    typer.run(main)
