"""Runs the study: ``python -m retouch.validation.generations --out DIR``."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Annotated, Any

import typer

from retouch.models import Sizes, TorchOptions, export_pipeline
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
    measure_cost,
    measure_quality,
    measure_trades,
    tables,
)
from retouch.validation.moments import page

_SMALL_AREA = 0.07


def main(
    out: Annotated[Path, typer.Option(help="Where the exported pipeline and the figures go.")] = Path(
        "out/generations"
    ),
    pipeline: Annotated[Path, typer.Option(help="The pipeline, in diffusers' format.")] = PIPELINE,
    write: Annotated[Path | None, typer.Option(help="A page whose tables are replaced, the picture beside it.")] = None,
    edits: Annotated[int, typer.Option(min=3, help="Edits whose quality is measured.")] = 100,
    traded: Annotated[int, typer.Option(min=1, help="Edits that are tried with fewer states.")] = 12,
    times: Annotated[bool, typer.Option("--times/--no-times", help="Time edits too; needs a quiet machine.")] = True,
) -> None:
    """Cost, quality and memory of edits of whole generations."""
    out.mkdir(parents=True, exist_ok=True)
    exported = out / "scenes.onnx"
    export_pipeline(pipeline, exported, TorchOptions(sizes=Sizes(batch=2)), tell=typer.echo)
    cases = draw_cases(edits)
    timed = [(threads, policy) for threads in (1, 2) for policy in POLICIES] if times else []
    costs = [measure_cost(exported, _small(), *one) for one in timed]
    with TextToImage(exported, threads=1) as editor:
        stock = StockPipeline(exported)
        outcomes = list(measure_quality(editor, stock, cases, typer.echo))
        trades = list(measure_trades(editor, stock, cases[:traded], typer.echo))
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
    (out / "figures.json").write_text(json.dumps(data, indent=1), encoding="utf-8")
    shown = [outcome for outcome in outcomes if outcome.policy == POLICIES[-1]]
    draw_sheet(out / "generations.png", cases, shown)
    if write is not None:
        write.write_text(page(write.read_text(encoding="utf-8"), blocks), encoding="utf-8")
        draw_sheet(write.with_suffix(".png"), cases, shown)


def _plain(outcome: Outcome) -> dict[str, Any]:
    values = {item.name: getattr(outcome, item.name) for item in fields(outcome) if item.name != "images"}
    return {**values, "kind": outcome.kind.value}


if __name__ == "__main__":
    typer.run(main)
