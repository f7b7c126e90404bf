"""Exports the pipeline of scenes, generates one, edits it, and reports what that costs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.console import Console
from rich.table import Column, Table

from retouch.calibrate import Sample, interleaved
from retouch.models.scenes import PIPELINE, parse_caption, read_scene
from retouch.sampling import Generation, PromptEdit, TextToImage
from retouch.validation.generations import Image, StockPipeline, export_calibrated
from retouch.validation.story._chapters import BASE, CHAPTERS, SLIDER, around
from retouch.validation.story._sheet import Panel, draw_sheet

__all__ = ["main"]

_TEXT = "encoder_hidden_states"


@dataclass(frozen=True)
class Row:
    """What an edit costs in ms of process CPU time, and what the reader reads in the image.

    Attributes:
        name: what the edit does.
        area: share of the image that is edited.
        edit_ms: the edit, decoded; of several edits at once, each one's share.
        again_ms: generating again with stock sessions.
        kept: share of the pixels that are bit-identical to the base's.
        reads: the object that is read at the place of the edited one.
    """

    name: str
    area: float
    edit_ms: float
    again_ms: float
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
        export_calibrated(pipeline, exported, threads, lambda step: status.update(f"export: {step}"))
    stock = StockPipeline(exported, threads)
    with TextToImage(exported, threads=threads) as editor:
        base = editor.generate(BASE, steps=steps, guidance=guidance, seed=seed)

        def against(edit: Callable[[], object], prompt: str) -> dict[str, Sample]:
            text = editor.conditions(prompt, guidance=guidance).branches()
            both = np.concatenate([branch[_TEXT] for branch in text])
            again = partial(stock.generate, both, guidance=guidance, steps=steps, seed=seed)
            return interleaved({"edit": edit, "again": again}, repeats)

        told = list(_edits(editor, base, against))
    draw_sheet(out / "scenes.png", [("base", base.image, None), *(panel for _, shown in told for panel in shown)])
    console.print(_table([row for row, _ in told]))
    console.print(f"the base reads as: {read_scene(base.image).caption}")
    (out / "scenes.json").write_text(json.dumps([asdict(row) for row, _ in told], indent=1), encoding="utf-8")
    console.print(f"pictures and table in {out}")


def _edits(
    editor: TextToImage, base: Generation, against: Callable[[Callable[[], object], str], dict[str, Sample]]
) -> Iterator[tuple[Row, list[Panel]]]:
    for chapter in CHAPTERS:
        region = around(chapter.place)
        edit = partial(editor.edit, base, region, chapter.prompt)
        edited, cost = edit(), against(edit, chapter.prompt)
        yield _row(chapter.name, chapter.place, cost, base, edited), [(chapter.name, edited.image, region)]
    source, target, strengths = SLIDER
    place = CHAPTERS[0].place
    region, direction = around(place), editor.direction(source, target)
    moves = [PromptEdit(region, direction=(direction, strength)) for strength in strengths]
    slide = partial(editor.edit_many, base, moves)
    several, cost = slide(), against(slide, target)
    panels: list[Panel] = [
        (f"strength {strength}", edited.image, region) for strength, edited in zip(strengths, several, strict=True)
    ]
    yield _row(f"{len(moves)} strengths at once, each", place, cost, base, several[-1], len(moves)), panels


def _row(name: str, place: str, cost: dict[str, Sample], base: Generation, edited: Generation, edits: int = 1) -> Row:
    kept = float((base.image == edited.image).all(axis=2).mean())
    return Row(
        name, around(place).area, cost["edit"].cpu_ms / edits, cost["again"].cpu_ms, kept, _read(edited.image, place)
    )


def _read(image: Image, place: str) -> str:
    """The object that is read where a caption has its first one."""
    cell = parse_caption(place).objects[0].place
    return next((one.phrase for one in read_scene(image).objects if one.place is cell), "nothing")


def _table(rows: list[Row]) -> Table:
    table = Table(Column("edit", min_width=16), "area", "edit ms", "again ms", "again / edit", "kept", "reads as")
    for row in rows:
        table.add_row(
            row.name,
            f"{row.area:.1%}",
            f"{row.edit_ms:.0f}",
            f"{row.again_ms:.0f}",
            f"{row.again_ms / row.edit_ms:.1f}",
            f"{row.kept:.0%}",
            row.reads,
        )
    return table
