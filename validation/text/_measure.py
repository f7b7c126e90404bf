"""Tokens per second against torch, and what edits cost."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from retouch.bench import TextMeasurement, measure_text
from retouch.engines.ort import WeightStorage
from retouch.models.code_lm import load_code_lm
from retouch.models.decoders import export_language_model
from retouch.text import Context, SamplerOptions, TextModel, TextSession, preset
from retouch.validation.text._shapes import Shape, random_network

PROMPT = "class WidthOwner:\n"


def main(
    model: Annotated[Path | None, typer.Argument(help="Directory of a network; without it, random weights.")] = None,
    shape: Annotated[Shape, typer.Option(help="The shape of random weights.")] = Shape.CODE,
    tokens: Annotated[int, typer.Option(min=1, help="New tokens.")] = 494,
    sampler: Annotated[str, typer.Option("--preset", help="How to sample.")] = "low-confidence",
    per_read: Annotated[int, typer.Option(min=1, help="Tokens that a read sets at least.")] = 1,
    threads: Annotated[list[int], typer.Option(min=1, help="Threads of both; a table for each of them.")] = [1, 2],  # noqa: B006
    repeats: Annotated[int, typer.Option(min=1, help="Rounds that count.")] = 3,
    json_file: Annotated[Path | None, typer.Option("--json", help="Also write the figures to this file.")] = None,
) -> None:
    """Times a text on ONNX Runtime and in torch, with and without a cache, and edits of it."""
    options = replace(preset(sampler), min_transfer=per_read)
    with tempfile.TemporaryDirectory() as folder:
        directory = model or random_network(shape, Path(folder) / "model")
        rows = {count: _measured(directory, Path(folder), tokens, options, count, repeats) for count in threads}
    if json_file is not None:
        json_file.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    for count, measured in rows.items():
        Console().print(_table(measured, count))


def _measured(
    directory: Path, folder: Path, tokens: int, options: SamplerOptions, threads: int, repeats: int
) -> list[TextMeasurement]:
    import torch

    from retouch.validation.text._torch_contexts import TorchCached, TorchUncached

    torch.set_num_threads(threads)
    network = load_code_lm(directory)
    others: dict[str, Callable[[int], Context]] = {
        "torch, cached": lambda _: TorchCached(network),
        "torch, uncached": lambda rows: TorchUncached(network, rows),
    }
    bundle = export_language_model(directory, folder / "bundle")
    with TextSession(bundle, threads=threads) as session:
        if session.model.engine.kernels:
            short = TextModel(bundle, threads=threads, weights=WeightStorage.BFLOAT16)
            others["cached, bfloat16 weights"] = short.context
        return measure_text(session, PROMPT, tokens, options, repeats=repeats, others=others)


def _table(rows: Sequence[TextMeasurement], threads: int) -> Table:
    times = ("CPU s", "to cached", "wall s", "to cached")
    table = Table("case", "forwards", *times, "tokens / CPU s", "same", title=f"threads: {threads}")
    cached = rows[0]["wall_s"]
    for row in rows:
        cpu = f"{row['cpu_s']:.4f}", f"{row['ratio']:.3f}"
        wall = f"{row['wall_s']:.4f}", f"{row['wall_s'] / cached:.3f}"
        same = "yes" if row["identical"] else "no"
        table.add_row(row["case"], str(row["forwards"]), *cpu, *wall, f"{row['tokens_per_s']:.0f}", same)
    return table
