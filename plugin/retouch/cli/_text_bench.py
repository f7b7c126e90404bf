"""``retouch text bench``: what texts cost with and without caches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer
from rich.table import Table

from retouch.bench import CacheMeasurement, TextMeasurement, measure_caches, measure_text
from retouch.bundle import TextBundle
from retouch.cli._results import result_console, write_json
from retouch.cli._steps import counted
from retouch.cli._text_caches import usual_caches
from retouch.cli._text_options import BenchThreads, BundlePath, Json, PresetName, Repeats, prompt_of
from retouch.text import TextModel, TextSession, preset
from retouch.text.full_attention import FullAttentionSampler

_Prompt = Annotated[str, typer.Option("--prompt", "-p", help="The text to continue; see `generate`.")]
_Length = Annotated[int, typer.Option("--tokens", "-n", min=1, help="New tokens; ends are ignored.")]
_Span = Annotated[int, typer.Option(min=1, help="Tokens of the span that edits choose anew.")]
_Full = Annotated[
    bool, typer.Option("--full-attention", help="Compare the approximate caches, though the model has causal blocks.")
]


def bench(
    bundle: BundlePath,
    prompt: _Prompt = "class A:\n",
    tokens: _Length = 256,
    span: _Span = 16,
    preset_name: PresetName = "quality",
    full_attention: _Full = False,
    threads: BenchThreads = 1,
    repeats: Repeats = 5,
    json_file: Json = None,
) -> None:
    """Times a text with and without a cache, and edits of a span in its middle, in turn, in one process.

    Ratios are of the CPU time of the process, to that of making the text with a cache. Where all tokens see each other
    it compares the approximate caches: their ratios are to no cache, and one more text of each is audited.
    """
    opened = TextBundle.open(bundle)
    if full_attention or not opened.manifest.model.block_causal:
        _bench_caches(TextModel(opened, threads=threads), prompt, tokens, repeats, json_file)
        return
    with TextSession(opened, threads=threads) as session, counted(repeats + 1) as begin:
        ids = session.tokens_of(prompt_of(prompt))
        rows = measure_text(
            session, ids.tolist(), tokens, preset(preset_name), span=span, repeats=repeats, progress=begin
        )
    write_json(json_file, rows)
    result_console(json_file).print(_times(rows))


def _bench_caches(model: TextModel, prompt: str, tokens: int, repeats: int, json_file: str | None) -> None:
    caches = usual_caches(model)
    ids = FullAttentionSampler(model).tokens_of(prompt_of(prompt)).tolist()
    with counted(repeats + 1) as begin:
        rows = measure_caches(model, ids, tokens, caches, repeats=repeats, progress=begin)
    write_json(json_file, rows)
    result_console(json_file).print(_caches(rows))


def _times(rows: Sequence[TextMeasurement]) -> Table:
    table = Table("case", "forwards", "CPU ms", "wall ms", "tokens / CPU s", "to cached", "same tokens")
    for row in rows:
        table.add_row(
            row["case"],
            str(row["forwards"]),
            f"{1e3 * row['cpu_s']:.1f}",
            f"{1e3 * row['wall_s']:.1f}",
            f"{row['tokens_per_s']:.0f}",
            f"{row['ratio']:.3f}",
            "yes" if row["identical"] else "no",
        )
    return table


def _caches(rows: Sequence[CacheMeasurement]) -> Table:
    table = Table(
        "cache", "CPU ms", "wall ms", "to no cache", "FLOPs", "oldest", "same tokens", "own choices", "divergence"
    )
    for row in rows:
        table.add_row(
            row["cache"],
            f"{1e3 * row['cpu_s']:.1f}",
            f"{1e3 * row['wall_s']:.1f}",
            f"{row['ratio']:.3f}",
            f"{row['flops']:.3f}",
            str(row["oldest"]),
            f"{row['same']:.1%}",
            f"{row['agreed']:.1%}",
            f"{row['divergence']:.4f}",
        )
    return table
