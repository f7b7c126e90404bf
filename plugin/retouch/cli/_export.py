"""``retouch export``: an ONNX model, or one of torch, becomes a bundle."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from retouch.bundle import BreakEven, Bundle, Manifest, MomentsSpec, read_shared, total_bytes
from retouch.calibrate import MomentExample, calibrate, calibrate_moments, calibrate_weights, sample_feeds
from retouch.cli._example import read_example
from retouch.cli._export_directory import export_any
from retouch.cli._export_text import export_text
from retouch.cli._precision import read_precisions
from retouch.cli._run import THREADS_HELP
from retouch.cli._steps import Steps
from retouch.errors import ExportError
from retouch.export import ExportOptions
from retouch.models import is_pipeline
from retouch.models.decoders import is_language_model

_EXAMPLE_RUNS = 12
"""So often edits are drawn of the one example that is given."""

_MOMENT_SECONDS = 14.0
"""Time for calibrating GroupNorm modes. A large model stays uncalibrated: :func:`calibrate_moments` takes its time."""


def export(
    model: Annotated[
        Path, typer.Argument(help="The .onnx file, or the directory of a diffusers or transformers model or pipeline.")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="Directory of the bundle, or of the pipeline.")],
    editable: Annotated[str | None, typer.Option("--input", help="Input that carries the editable positions.")] = None,
    axes: Annotated[str | None, typer.Option(help="Its axes that carry positions, for example 2,3.")] = None,
    fix: Annotated[
        list[str] | None,
        typer.Option(help="Size of an open dim, or of a torch model (batch, height, width, text, tokens): NAME=SIZE."),
    ] = None,
    example: Annotated[Path | None, typer.Option(help="An .npz with feeds, to verify and calibrate with.")] = None,
    text: Annotated[
        Literal["recompute", "frozen"],
        typer.Option(help="Text tokens beside image tokens: computed anew by every edit, or left as they were."),
    ] = "recompute",
    keeps_positions: Annotated[
        list[str] | None,
        typer.Option(help="Operator without a rule whose result at a position belongs there, such as my.domain.Foo."),
    ] = None,
    precision: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[COMPONENT=]float32|float16",
            help="Convert first, of a pipeline all components or one: unet=float16. CPUs do not run bfloat16.",
        ),
    ] = None,
    share: Annotated[
        Path | None,
        typer.Option(help="A bundle (or exported pipeline) of the same model for another size, to share weights with."),
    ] = None,
    part: Annotated[str | None, typer.Option(help="Part of a torch model: encoder, decoder, controlled.")] = None,
    opset: Annotated[int | None, typer.Option(min=18, help="Opset that a torch model is exported to.")] = None,
    min_coverage: Annotated[
        float, typer.Option(min=0, max=1, help="Smallest share of the FLOPs that an edit saves on.")
    ] = 0.9,
    with_calibration: Annotated[
        bool,
        typer.Option(
            "--calibrate/--no-calibrate",
            help="Measure from which size on a full run is faster than an edit, and what GroupNorm modes err.",
        ),
    ] = True,
    threads: Annotated[int | None, typer.Option(min=1, help=f"For the calibration. {THREADS_HELP}")] = None,
) -> None:
    """Exports a model into a bundle: verifies it, and measures its break-even and what its GroupNorm modes err.

    A block-diffusion language model becomes a text bundle, for `retouch text`.
    """
    if is_language_model(model):
        export_text(model, output)
        return
    feeds = read_example(example, model)
    common, components = read_precisions(precision or [])
    options = ExportOptions(
        editable=editable,
        axes=_axes(axes),
        fix=_sizes(fix or []),
        example=feeds or None,
        text=text,
        keeps_positions=tuple(keeps_positions or ()),
        precision=common,
        share=share,
        min_coverage=min_coverage,
    )
    with Steps() as steps:
        bundles = export_any(model, output, options, part=part, opset=opset, precisions=components, tell=steps.begin)
        measured = {
            name: _measured(bundle, feeds, threads, steps) if with_calibration else None
            for name, bundle in bundles.items()
        }
        moments = {
            name: _measured_moments(bundle, feeds, threads, steps) if with_calibration else None
            for name, bundle in bundles.items()
        }
        for bundle in bundles.values() if with_calibration else ():
            _measure_weights(bundle, feeds, threads, steps)
    for name, bundle in bundles.items():
        written = Bundle.open(bundle.path, check="none")  # with what was measured since
        Console().print(_summary(written, measured[name], moments[name]))
    if is_pipeline(output):
        Console().print(f"{output}: {_disk_bytes(output) / 2**20:.1f} MiB on disk", soft_wrap=True, highlight=False)


def _measured(bundle: Bundle, feeds: Mapping[str, np.ndarray], threads: int | None, steps: Steps) -> BreakEven:
    given = {**sample_feeds(bundle.manifest), **feeds}
    return calibrate(bundle, feeds=given, threads=threads, progress=lambda line: steps.begin(f"calibrate: {line}"))


def _measure_weights(bundle: Bundle, feeds: Mapping[str, np.ndarray], threads: int | None, steps: Steps) -> None:
    given = {**sample_feeds(bundle.manifest), **feeds}
    calibrate_weights(bundle, feeds=given, threads=threads, progress=lambda line: steps.begin(f"calibrate: {line}"))


def _disk_bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _measured_moments(
    bundle: Bundle, feeds: Mapping[str, np.ndarray], threads: int | None, steps: Steps
) -> MomentsSpec | None:
    example = MomentExample({**sample_feeds(bundle.manifest), **feeds})
    given = [example] * _EXAMPLE_RUNS if bundle.manifest.editable.input in feeds else None
    return calibrate_moments(
        bundle,
        given,
        threads=threads,
        seconds=_MOMENT_SECONDS,
        progress=lambda line: steps.begin(f"calibrate: {line}"),
    )


def moments_text(manifest: Manifest, spec: MomentsSpec | None) -> str:
    """The calibration of GroupNorm modes in words."""
    if "corrected" not in manifest.edits:
        return "none"
    if spec is None:
        return "not calibrated: 'auto' takes cached moments; retouch.calibrate.calibrate_moments takes the time"
    return f"errors foreseen from {len(spec.shifts)} edits, rank correlation {spec.correlation:.2f}"


def _summary(bundle: Bundle, measured: BreakEven | None, moments: MomentsSpec | None) -> Table:
    manifest = bundle.manifest
    table = Table(show_header=False)
    table.add_row("bundle", str(bundle.path))
    table.add_row("size", f"{sum(spec.bytes for spec in manifest.files.values()) / 2**20:.1f} MiB")
    shared = read_shared(bundle.path)
    if shared is not None:
        table.add_row("shared", f"up to {shared.bytes / 2**20:.1f} MiB, in {(bundle.path / shared.path).resolve()}")
    table.add_row("coverage", f"{manifest.coverage:.2%} of {manifest.flops / 1e9:.2f} GFLOP")
    table.add_row("states", f"up to {total_bytes(manifest.cacheables) / 2**20:.1f} MiB a run")
    for check, error in manifest.verification.items():
        table.add_row(f"verified {check}", f"{error:.1e} of the output's scale")
    table.add_row("break-even", break_even_text(measured))
    table.add_row("GroupNorm", moments_text(manifest, moments))
    return table


def break_even_text(measured: BreakEven | None) -> str:
    """A break-even in words."""
    if measured is None:
        return "not measured: no edit takes the dense fallback"
    threads = f"{measured.engine}, {measured.threads} thread{'s' if measured.threads > 1 else ''}"
    if measured.flop_ratio > 1:
        return f"none: edits are faster up to all of the FLOPs ({threads})"
    return f"{measured.flop_ratio:.0%} of the FLOPs, from where on a full run is faster ({threads})"


def _axes(text: str | None) -> tuple[int, ...] | None:
    if text is None:
        return None
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError as error:
        raise ExportError(f"Expected --axes to be a list of axes, got {text!r}. Write it like 2,3.") from error


def _sizes(pairs: list[str]) -> dict[str, int]:
    sizes = {}
    for pair in pairs:
        name, _, size = pair.partition("=")
        if not name or not size.isdigit() or int(size) == 0:
            raise ExportError(
                f"Expected --fix NAME=SIZE, got {pair!r}; SIZE is an integer of at least 1. Write it like batch=1."
            )
        sizes[name] = int(size)
    return sizes
