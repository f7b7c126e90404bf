"""``retouch export``: an ONNX model becomes a bundle."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.console import Console

from retouch.bundle import Bundle, total_bytes
from retouch.errors import ExportError
from retouch.export import ExportOptions, export_onnx


def export(
    model: Annotated[Path, typer.Argument(help="The .onnx file.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Directory of the bundle.")],
    editable: Annotated[str | None, typer.Option("--input", help="Input that carries the editable positions.")] = None,
    axes: Annotated[str | None, typer.Option(help="Its axes that carry positions, for example 2,3.")] = None,
    fix: Annotated[list[str] | None, typer.Option(help="Size of an open dim, NAME=SIZE; may be repeated.")] = None,
    example: Annotated[Path | None, typer.Option(help="An .npz with feeds for verification.")] = None,
    min_coverage: Annotated[float, typer.Option(help="Smallest share of the FLOPs that an edit saves on.")] = 0.9,
) -> None:
    """Exports an ONNX model into a bundle and verifies it."""
    options = ExportOptions(
        editable=editable,
        axes=_axes(axes),
        fix=_sizes(fix or []),
        example=_feeds(example),
        min_coverage=min_coverage,
    )
    console = Console(stderr=True)
    with console.status("export") as status:
        bundle = export_onnx(model, output, options, tell=lambda step: status.update(f"export: {step}"))
    _summarise(bundle, console)


def _summarise(bundle: Bundle, console: Console) -> None:
    manifest = bundle.manifest
    worst = max(manifest.verification.values(), default=float("nan"))
    states = total_bytes(manifest.cacheables) / 2**20
    console.print(
        f"{bundle.path}: coverage {manifest.coverage:.1%} of {manifest.flops / 1e9:.2f} GFLOP, "
        f"states {states:.1f} MiB a run, largest verification error {worst:.1e} of the output's scale"
    )


def _axes(text: str | None) -> tuple[int, ...] | None:
    if text is None:
        return None
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError as error:
        raise ExportError(f"--axes {text!r} is not a list of axes. Write it like 2,3.") from error


def _sizes(pairs: list[str]) -> dict[str, int]:
    sizes = {}
    for pair in pairs:
        name, _, size = pair.partition("=")
        if not name or not size.isdigit() or int(size) == 0:
            raise ExportError(f"--fix {pair!r} is not NAME=SIZE. Write it like batch=1.")
        sizes[name] = int(size)
    return sizes


def _feeds(path: Path | None) -> dict[str, np.ndarray] | None:
    if path is None:
        return None
    try:
        with np.load(path) as archive:
            return {name: archive[name] for name in archive.files}
    except (OSError, ValueError, AttributeError) as error:
        raise ExportError(f"--example {path} is not a readable .npz file ({error}).") from error
