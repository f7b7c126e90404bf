"""Exports the pipeline of scenes, generates one, edits it, and reports what that costs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Column, Table

from retouch.models import Sizes, TorchOptions, export_pipeline
from retouch.models.scenes import PIPELINE, read_scene
from retouch.region import Region
from retouch.sampling import Generation, PromptEdit, TextToImage
from retouch.validation.story._chapters import BASE, CHAPTERS, SLIDER, around
from retouch.validation.story._measure import interleaved
from retouch.validation.story._sheet import Panel, draw_sheet
from retouch.validation.story._stock import StockPipeline

__all__ = ["main"]


@dataclass(frozen=True)
class Row:
    """What edits cost in ms of process CPU time, and what the reader reads in the image.

    Attributes:
        name: what the edit does.
        area: share of the image that is edited.
        edit_ms: the edit, decoded; of several edits at once, each one's share.
        full_ms: generating anew with stock sessions.
        kept: share of the pixels that are bit-identical to the base's.
        reads: the caption that is read in the result.
    """

    name: str
    area: float
    edit_ms: float
    full_ms: float
    kept: float
    reads: str


def main(
    out: Annotated[Path, typer.Option(help="Where the exported pipeline, the pictures and the table go.")] = Path(
        "out/demo"
    ),
    pipeline: Annotated[Path, typer.Option(help="The trained pipeline.")] = PIPELINE,
    steps: Annotated[int, typer.Option(min=1, help="DDIM steps.")] = 20,
    guidance: Annotated[float, typer.Option(min=1, help="Weight of the guidance.")] = 3.0,
    seed: Annotated[int, typer.Option(help="Seed of the noise.")] = 0,
    repeats: Annotated[int, typer.Option(min=1, help="How often everything is measured.")] = 5,
    threads: Annotated[int, typer.Option(min=1, help="Threads of ONNX Runtime.")] = 1,
) -> None:
    """One generated scene: another colour, an object removed, a strength, all from the same base."""
    console = Console()
    out.mkdir(parents=True, exist_ok=True)
    exported = out / "scenes.onnx"
    with console.status("export") as status:
        tell = lambda step: status.update(f"export: {step}")  # noqa: E731
        export_pipeline(pipeline, exported, TorchOptions(sizes=Sizes(batch=2)), tell=tell)
    stock = StockPipeline(exported, threads)
    anew = partial(stock.generate, steps=steps, guidance=guidance, seed=seed)
    with TextToImage(exported, threads=threads) as editor:
        record = partial(editor.generate, BASE, steps=steps, guidance=guidance, seed=seed)
        base = record()
        told = list(_edits(editor, base, anew, repeats))
        cost = interleaved(lambda: record().close(), partial(anew, BASE), repeats)
    rows, panels = [row for row, _ in told], [panel for _, shown in told for panel in shown]
    draw_sheet(out / "scenes.png", [("base", base.image, None), *panels])
    console.print(_table(rows))
    console.print(f"the base reads as: {read_scene(base.image).caption}")
    console.print(f"recorded in {cost[0]:.0f} ms, made by stock sessions in {cost[1]:.0f} ms")
    (out / "scenes.json").write_text(json.dumps([asdict(row) for row in rows], indent=1))
    console.print(f"pictures and table in {out}")


def _edits(
    editor: TextToImage, base: Generation, anew: partial[NDArray[np.uint8]], repeats: int
) -> Iterator[tuple[Row, list[Panel]]]:
    for chapter in CHAPTERS:
        region, prompt = around(chapter.place), chapter.prompt
        edited = editor.edit(base, region, prompt)
        cost = interleaved(partial(editor.edit, base, region, prompt), partial(anew, prompt), repeats)
        yield _row(chapter.name, region, cost, base, edited), [(chapter.name, edited.image, region)]
    source, target, strengths = SLIDER
    region, direction = around(CHAPTERS[0].place), editor.direction(source, target)
    moves = [PromptEdit(region, direction=(direction, strength)) for strength in strengths]
    edited_many = editor.edit_many(base, moves)
    edit_ms, full_ms = interleaved(partial(editor.edit_many, base, moves), partial(anew, target), repeats)
    name = f"{len(moves)} strengths at once, each"
    panels: list[Panel] = [
        (f"strength {strength}", edited.image, region) for strength, edited in zip(strengths, edited_many, strict=True)
    ]
    yield _row(name, region, (edit_ms / len(moves), full_ms), base, edited_many[-1]), panels


def _row(name: str, region: Region, cost: tuple[float, float], base: Generation, edited: Generation) -> Row:
    kept = float((base.image == edited.image).all(axis=2).mean())
    return Row(name, region.area, *cost, kept, read_scene(edited.image).caption)


def _table(rows: list[Row]) -> Table:
    table = Table(Column("edit", min_width=16), "area", "edit ms", "anew ms", "anew / edit", "kept", "reads as")
    for row in rows:
        table.add_row(
            row.name,
            f"{row.area:.1%}",
            f"{row.edit_ms:.0f}",
            f"{row.full_ms:.0f}",
            f"{row.full_ms / row.edit_ms:.1f}",
            f"{row.kept:.0%}",
            row.reads,
        )
    return table
