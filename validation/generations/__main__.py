"""Runs the study: ``python -m retouch.validation.generations --out DIR``."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, fields
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import typer

from retouch.models.scenes import PIPELINE
from retouch.sampling import TextToImage
from retouch.validation.generations import (
    POLICIES,
    Case,
    Cost,
    Kind,
    Outcome,
    StockPipeline,
    Trade,
    draw_cases,
    draw_sheet,
    export_calibrated,
    measure_cost,
    measure_quality,
    measure_trades,
    tables,
)
from retouch.validation.moments import page

_SMALL_AREA = 0.07


class Part(Enum):
    """A table of the study."""

    COST = "cost"
    QUALITY = "quality"
    MEMORY = "memory"


def main(
    out: Annotated[Path, typer.Option(help="Where the exported pipeline and the figures go.")] = Path(
        "out/generations"
    ),
    pipeline: Annotated[Path, typer.Option(help="The pipeline, in diffusers' format.")] = PIPELINE,
    write: Annotated[Path | None, typer.Option(help="A page whose tables are replaced, the picture beside it.")] = None,
    edits: Annotated[int, typer.Option(min=3, help="Edits whose quality is measured.")] = 100,
    traded: Annotated[int, typer.Option(min=1, help="Edits that are tried with fewer states.")] = 12,
    part: Annotated[
        list[Part] | None, typer.Option(help="Measure this only; by default all. Costs want a quiet machine.")
    ] = None,
) -> None:
    """Cost, quality and memory of edits of whole generations."""
    out.mkdir(parents=True, exist_ok=True)
    exported = out / "scenes.onnx"
    export_calibrated(pipeline, exported, 1, typer.echo)
    cases, parts = draw_cases(edits), part or list(Part)
    timed = [(threads, policy) for threads in (1, 2) for policy in POLICIES] if Part.COST in parts else []
    costs = [measure_cost(exported, _small(), *one) for one in timed]
    with TextToImage(exported, threads=1) as editor:
        stock = StockPipeline(exported)
        outcomes = list(measure_quality(editor, stock, cases, typer.echo)) if Part.QUALITY in parts else []
        trades = list(measure_trades(editor, stock, cases[:traded], typer.echo)) if Part.MEMORY in parts else []
    _write(out, write, cases, costs, outcomes, trades)


def _small() -> Case:
    """The first edit that gives a small object another colour."""
    return next(case for case in draw_cases(100) if case.kind is Kind.RECOLOUR and case.region.area < _SMALL_AREA)


def _write(
    out: Path,
    write: Path | None,
    cases: Sequence[Case],
    costs: Sequence[Cost],
    outcomes: Sequence[Outcome],
    trades: Sequence[Trade],
) -> None:
    blocks = tables(costs, outcomes, trades)
    typer.echo("\n\n".join(blocks.values()))
    data = {
        "costs": [asdict(cost) for cost in costs],
        "outcomes": [_plain(outcome) for outcome in outcomes],
        "trades": [asdict(trade) for trade in trades],
    }
    (out / f"figures-{'-'.join(blocks)}.json").write_text(json.dumps(data, indent=1), encoding="utf-8")
    if write is not None:
        write.write_text(page(write.read_text(encoding="utf-8"), blocks), encoding="utf-8")
    shown = [outcome for outcome in outcomes if outcome.policy == POLICIES[-1]]
    for sheet in [out / "generations.png", *([] if write is None else [write.with_suffix(".png")])] if shown else []:
        draw_sheet(sheet, cases, shown)


def _plain(outcome: Outcome) -> dict[str, Any]:
    values = {item.name: getattr(outcome, item.name) for item in fields(outcome) if item.name != "images"}
    return {**values, "kind": outcome.kind.value}


if __name__ == "__main__":
    typer.run(main)
