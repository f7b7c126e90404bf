"""``retouch validate``: edits against the masked reference and against full recomputations."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from retouch.bench import check_original
from retouch.bundle import Bundle
from retouch.cli._areas import parse_areas
from retouch.cli._results import JSON_HELP, result_console, write_json
from retouch.cli._run import THREADS_HELP
from retouch.cli._steps import Steps
from retouch.region import POLICIES
from retouch.session import Moments, WeightStorage
from retouch.validation import accuracy

_AREAS = "0.01,0.05,0.25"
_FAILED = 1
_CAPTION = (
    "oracle: largest error against the masked reference, of the output's scale. Others: PSNR in dB against a full "
    "recomputation; unedited is inside with nothing recomputed."
)

_FEEDS_HELP = (
    "A .npz with feeds of the base run by input name, and of the edits as edit.NAME. What it leaves out is made up."
)
_PSNR_HELP = "Smallest PSNR inside a region against a full recomputation, in dB; by default none is asked for."


_Bundle = Annotated[Path, typer.Argument(help="Directory of the bundle.")]
_Areas = Annotated[str, typer.Option(help="Shares of the editable positions to edit, above 0 and at most 1.")]
_Report = Annotated[
    Path | None, typer.Option(metavar="DIR", help="Directory to write: a report, pictures, files for Polygraphy.")
]
_Feeds = Annotated[Path | None, typer.Option(metavar="FILE.npz", help=_FEEDS_HELP)]
_Original = Annotated[
    Path | None, typer.Option(metavar="MODEL.onnx", help="The exported model; else the bundle's base graph.")
]
_Policy = Annotated[str, typer.Option(help=f"How far around regions to compute: {', '.join(POLICIES)}.")]
_GroupNorm = Annotated[Moments, typer.Option(help="GroupNorm moments of the edits; 'auto' takes one or the other.")]
_Drift = Annotated[int, typer.Option(min=0, help="Edits in a row, each based on the one before; 0 leaves them out.")]
_MinPsnr = Annotated[float | None, typer.Option(help=_PSNR_HELP)]
_Peak = Annotated[
    float | None, typer.Option(min=1e-9, help="Range of the outputs, for PSNR; by default what the base run spans.")
]
_Threads = Annotated[int | None, typer.Option(min=1, help=THREADS_HELP)]
_Weights = Annotated[
    WeightStorage, typer.Option(help="How edits keep weights; what that errs is their error against the oracle.")
]
_Json = Annotated[str | None, typer.Option("--json", metavar="FILE", help=JSON_HELP)]


def validate(
    bundle: _Bundle,
    areas: _Areas = _AREAS,
    report: _Report = None,
    feeds: _Feeds = None,
    original: _Original = None,
    policy: _Policy = "balanced",
    group_norm: _GroupNorm = "cached",
    drift: _Drift = 10,
    min_psnr: _MinPsnr = None,
    peak: _Peak = None,
    threads: _Threads = None,
    weights: _Weights = WeightStorage.FLOAT32,
    json_file: _Json = None,
) -> None:
    """Checks that a bundle's edits compute what they mean, and measures how close they come to recomputing everything.

    Every edit is run three times with Polygraphy: by the full model, by the masked reference, and by a session. Exits
    with 1 if an edit differs from the reference by more than rounding, or touches rows that it has to keep.
    """
    accuracy.require_polygraphy()
    options = accuracy.ValidationOptions(
        parse_areas(areas, _AREAS), feeds, original, policy, group_norm, drift, min_psnr, peak, threads, weights
    )
    opened = Bundle.open(bundle)
    if original is not None:
        check_original(original, opened.manifest)
    with Steps() as steps:
        validation = accuracy.validate(opened, options, steps.begin)
        if report is not None:
            accuracy.write_report(validation, report, steps.begin)
    write_json(json_file, accuracy.figures_json(validation))
    _show(validation.figures, json_file)
    if not validation.figures.passed:
        raise typer.Exit(_FAILED)


def _show(figures: accuracy.Figures, json_file: str | None) -> None:
    console = result_console(json_file)
    rows = accuracy.summary_table(figures.cases)
    table = Table(*rows.head, caption=_CAPTION, box=None, padding=(0, 1, 0, 0))
    for row in rows.rows:
        table.add_row(*map(escape, row))
    console.print(table)
    for remark in figures.remarks:
        console.print(escape(remark), style="yellow", highlight=False)
    for case in figures.cases:
        for fault in case.faults:
            console.print(escape(f"{case.suite}, {case.name}: {fault}"), style="red", highlight=False)
    console.print("passed" if figures.passed else "FAILED", style="bold green" if figures.passed else "bold red")
