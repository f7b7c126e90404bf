"""Tokens per second against torch, and what edits cost."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from retouch.bench import TextMeasurement, measure_text
from retouch.models.code_lm import CodeLmConfig, load_code_lm, save_code_lm
from retouch.models.decoders import export_language_model
from retouch.text import TextSession, preset
from retouch.tokens import code_characters

_PROMPT = "class WidthOwner:\n"


def main(
    model: Annotated[
        Path | None, typer.Argument(help="Directory of a network; without it, the default shape with random weights.")
    ] = None,
    tokens: Annotated[int, typer.Option(min=1, help="New tokens.")] = 494,
    sampler: Annotated[str, typer.Option("--preset", help="How to sample.")] = "low-confidence",
    threads: Annotated[int, typer.Option(min=1, help="Threads of both.")] = 1,
    repeats: Annotated[int, typer.Option(min=1, help="Rounds that count.")] = 3,
    json_file: Annotated[Path | None, typer.Option("--json", help="Also write the figures to this file.")] = None,
) -> None:
    """Times a text on ONNX Runtime and in torch, with and without a cache, and edits of it."""
    import torch

    from retouch.validation.text._torch_contexts import TorchCached, TorchUncached

    torch.set_num_threads(threads)
    with tempfile.TemporaryDirectory() as folder:
        directory = model or _random_network(Path(folder) / "model")
        network = load_code_lm(directory)
        bundle = export_language_model(directory, Path(folder) / "bundle")
        others = {
            "torch, cached": lambda _: TorchCached(network),
            "torch, uncached": lambda rows: TorchUncached(network, rows),
        }
        with TextSession(bundle, threads=threads) as session:
            rows = measure_text(session, _PROMPT, tokens, preset(sampler), repeats=repeats, others=others)
    if json_file is not None:
        json_file.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    Console().print(_table(rows))


def _random_network(folder: Path) -> Path:
    import torch

    from retouch.models.code_lm._network import CodeLm

    torch.manual_seed(0)
    save_code_lm(CodeLm(CodeLmConfig()), code_characters(), folder, half=False)
    return folder


def _table(rows: Sequence[TextMeasurement]) -> Table:
    table = Table("case", "forwards", "CPU s", "wall s", "tokens / CPU s", "to cached", "same tokens")
    for row in rows:
        figures = f"{row['cpu_s']:.4f}", f"{row['wall_s']:.4f}", f"{row['tokens_per_s']:.0f}", f"{row['ratio']:.3f}"
        table.add_row(row["case"], str(row["forwards"]), *figures, "yes" if row["identical"] else "no")
    return table
