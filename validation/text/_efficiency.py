"""Where caches of block diffusion pay, and where they do not: short texts, and several texts at once."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from retouch.bench import TextMeasurement, measure_text
from retouch.calibrate import interleaved
from retouch.models.decoders import export_language_model
from retouch.text import Candidate, EditMode, EosRule, SamplerOptions, TextSession, preset
from retouch.validation.text._measure import PROMPT
from retouch.validation.text._shapes import Shape, random_network

__all__ = ["efficiency_main"]

_LENGTHS = (14, 30, 62, 110, 238, 494)
_CASES = ("cached", "uncached", "edit, frozen", "edit, exact")
_BATCHES = (1, 2, 4, 8)
_BATCH_TOKENS = 110
_SPAN = 16


def efficiency_main(
    model: Annotated[Path | None, typer.Argument(help="Directory of a network; without it, random weights.")] = None,
    shape: Annotated[Shape, typer.Option(help="The shape of random weights.")] = Shape.CODE,
    sampler: Annotated[str, typer.Option("--preset", help="How to sample.")] = "low-confidence",
    per_read: Annotated[int, typer.Option(min=1, help="Tokens that a read sets at least.")] = 1,
    longest: Annotated[int, typer.Option(min=1, help="New tokens of the longest text.")] = _LENGTHS[-1],
    threads: Annotated[int, typer.Option(min=1, help="Threads.")] = 1,
    repeats: Annotated[int, typer.Option(min=1, help="Rounds that count.")] = 3,
    json_file: Annotated[Path | None, typer.Option("--json", help="Also write the figures to this file.")] = None,
) -> None:
    """Times texts of growing length with and without a cache, edits of them, and several texts and edits at once."""
    with tempfile.TemporaryDirectory() as folder:
        directory = model or random_network(shape, Path(folder) / "model")
        with TextSession(export_language_model(directory, Path(folder) / "bundle"), threads=threads) as session:
            options = replace(preset(sampler), min_transfer=per_read)
            lengths = [length for length in _LENGTHS if length <= longest]
            by_length = {n: measure_text(session, PROMPT, n, options, span=_SPAN, repeats=repeats) for n in lengths}
            at_once = _interleaved_batches(session, options, repeats)
    if json_file is not None:
        data = {"lengths": by_length, "batches": at_once}
        json_file.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    Console().print(_lengths(by_length), _batches(at_once))


def _interleaved_batches(session: TextSession, options: SamplerOptions, repeats: int) -> dict[str, dict[int, float]]:
    """CPU milliseconds a text, by how they are made and how many there are."""
    ways = {(name, count): way for count in _BATCHES for name, way in _ways(session, count, options).items()}
    times = interleaved({f"{name}|{count}": way for (name, count), way in ways.items()}, repeats)
    found: dict[str, dict[int, float]] = {}
    for name, count in ways:
        found.setdefault(name, {})[count] = times[f"{name}|{count}"].cpu_ms / count
    return found


def _ways(session: TextSession, count: int, options: SamplerOptions) -> dict[str, Callable[[], object]]:
    fixed = replace(options, eos=EosRule.IGNORED)
    prompts = [f"class Width{letter}:\n" for letter in "ABCDEFGH"[:count]]
    base = session.generate(PROMPT, _BATCH_TOKENS, options=fixed)
    middle = len(base.tokens) // 2
    drawn = replace(fixed, temperature=0.8, edit_threshold=None)
    edits = [
        Candidate([(middle, middle + _SPAN)], mode=EditMode.FROZEN, options=drawn, seed=seed) for seed in range(count)
    ]

    def alone(*, cache: bool) -> None:
        for prompt in prompts:
            session.generate(prompt, _BATCH_TOKENS, options=fixed, cache=cache, record=False)

    def edited() -> None:
        for edit in edits:
            session.edit(base, edit.spans, mode=edit.mode, options=edit.options, seed=edit.seed, record=False)

    return {
        "cached, one by one": partial(alone, cache=True),
        "cached, at once": lambda: session.generate_many(prompts, _BATCH_TOKENS, options=fixed, record=False),
        "uncached, one by one": partial(alone, cache=False),
        "frozen edits, one by one": edited,
        "frozen edits, at once": lambda: session.edit_many(base, edits, record=False),
    }


def _lengths(by_length: Mapping[int, Sequence[TextMeasurement]]) -> Table:
    table = Table(
        "new tokens",
        "cached, CPU ms",
        "uncached",
        "edit, frozen",
        "edit, exact",
        title="times the CPU time with a cache",
    )
    for length, rows in by_length.items():
        by_case = {row["case"]: row for row in rows}
        cached, *others = (by_case[case] for case in _CASES)
        ratios = (f"{row['ratio']:.2f}" if row["ratio"] > 1 else f"1 / {1 / row['ratio']:.1f}" for row in others)
        table.add_row(str(length), f"{1e3 * cached['cpu_s']:.2f}", *ratios)
    return table


def _batches(at_once: Mapping[str, Mapping[int, float]]) -> Table:
    table = Table("CPU ms a text", *(f"{count} texts" for count in _BATCHES))
    for name, times in at_once.items():
        table.add_row(name, *(f"{ms:.2f}" for ms in times.values()))
    return table
