"""Measures drop-in sessions in a pipeline of optimum-onnx: ``python -m retouch.validation.drop_in --out DIR``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from retouch.models import Sizes, TorchOptions, export_pipeline
from retouch.models.scenes import PIPELINE
from retouch.validation.benchmarks import table
from retouch.validation.drop_in import Cost, measure_cost
from retouch.validation.moments import page

_PROMPT = "a small red circle on the left, a large yellow cross at the bottom, grey background"
_HEAD = ("one image, 20 steps with guidance", "stock ms", "drop-in ms", "ratio", "same image")


def main(
    out: Annotated[Path, typer.Option(help="Where the exported pipeline goes.")] = Path("out/drop-in"),
    pipeline: Annotated[Path, typer.Option(help="The pipeline, in diffusers' format.")] = PIPELINE,
    exported: Annotated[Path | None, typer.Option(help="The exported pipeline, if there is one already.")] = None,
    write: Annotated[Path | None, typer.Option(help="A page whose table is replaced.")] = None,
    steps: Annotated[int, typer.Option(min=1, help="Number of steps.")] = 20,
    repeats: Annotated[int, typer.Option(min=1, help="Rounds, after two to warm up.")] = 9,
) -> None:
    """What an image costs on stock sessions and on drop-in sessions, without a recording or an edit."""
    where = exported or out / "scenes.onnx"
    if exported is None:
        out.mkdir(parents=True, exist_ok=True)
        export_pipeline(pipeline, where, TorchOptions(sizes=Sizes(batch=2)), tell=typer.echo)
    text = _table(measure_cost(where, _PROMPT, steps=steps, repeats=repeats))
    typer.echo(text)
    if write is not None:
        write.write_text(page(write.read_text(encoding="utf-8"), {"optimum": text}), encoding="utf-8")


def _table(cost: Cost) -> str:
    same = "bit for bit" if cost.identical else "NO"
    rows = [
        (name, f"{stock:.0f}", f"{own:.0f}", f"{own / stock:.3f}", same)
        for name, stock, own in (
            ("CPU time, 1 thread", cost.stock.cpu_ms, cost.drop_in.cpu_ms),
            ("time on the clock", cost.stock.wall_ms, cost.drop_in.wall_ms),
        )
    ]
    return table(_HEAD, rows)


if __name__ == "__main__":
    typer.run(main)
