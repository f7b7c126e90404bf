"""How well the trained networks know what they have not seen, and what every way of sampling makes of it."""

from __future__ import annotations

import dataclasses
import json
import tempfile
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from retouch.models.code_lm import (
    PATTERNS_MODEL,
    CorpusName,
    held_out,
    held_out_patterns,
    load_code_lm,
    load_tokenizer,
    unseen_patterns,
)
from retouch.models.decoders import export_language_model
from retouch.text import PRESETS, SamplerOptions, TextReport, TextSession
from retouch.validation.text._completions import CodeScore, Completion, code_prompts, score_code
from retouch.validation.text._patterns import PatternScore, score_patterns

__all__ = ["ONE_BY_ONE", "evaluate_main"]

ONE_BY_ONE = SamplerOptions(threshold=1.0, edit_threshold=None)
"""The most confident token in every read, and no edits."""

_SAMPLERS: Mapping[str, SamplerOptions] = {"one by one": ONE_BY_ONE, **PRESETS}
_LENGTHS = {CorpusName.PATTERNS: 288, CorpusName.PYTHON: 256}  # windows, as in training

Rows = Mapping[str, PatternScore | CodeScore]


def evaluate_main(
    patterns: Annotated[Path, typer.Option(help="Directory of the network of patterns.")] = PATTERNS_MODEL,
    python: Annotated[Path | None, typer.Option(help="Directory of a network of code.")] = None,
    causal: Annotated[Path | None, typer.Option(help="Directory of an autoregressive baseline of code.")] = None,
    count: Annotated[int, typer.Option(min=1, help="Held-out patterns, and half as many beginnings of code.")] = 200,
    tokens: Annotated[int, typer.Option(min=1, help="New tokens of a completion of code.")] = 128,
    batches: Annotated[int, typer.Option(min=1, help="Bits per character are of so many times 32 windows.")] = 16,
    threads: Annotated[int, typer.Option(min=1, help="Threads of torch and of ONNX Runtime.")] = 1,
    json_file: Annotated[Path | None, typer.Option("--json", help="Also write the figures to this file.")] = None,
) -> None:
    """Scores completions of held-out patterns and code with every preset, and bits per character."""
    import torch

    torch.set_num_threads(threads)
    bits = {"patterns (at most)": _bits(patterns, CorpusName.PATTERNS, batches)}
    if python is not None:
        bits["python (at most)"] = _bits(python, CorpusName.PYTHON, batches)
    if causal is not None:
        bits["python, autoregressive"] = _bits(causal, CorpusName.PYTHON, batches, causal=True)
    texts = {"patterns": list(held_out_patterns(count)), "patterns not learned from": unseen_patterns(count)}
    scores = {name: _patterns(patterns, chosen, threads) for name, chosen in texts.items() if chosen}
    if python is not None or causal is not None:
        scores["python"] = _code(python, causal, max(count // 2, 1), tokens, threads)
    if json_file is not None:
        _write(json_file, bits, scores)
    console = Console()
    console.print(_bits_table(bits))
    for name, rows in scores.items():
        console.print(_table(name, rows))


def _bits(folder: Path, name: CorpusName, batches: int, *, causal: bool = False) -> float:
    from retouch.models.code_lm._scoring import causal_bits, held_out_bits

    score = causal_bits if causal else held_out_bits
    return score(load_code_lm(folder), held_out(name, load_tokenizer(folder)), _LENGTHS[name], batches)


def _patterns(model: Path, texts: list[str], threads: int) -> Rows:
    with tempfile.TemporaryDirectory() as folder:
        bundle = export_language_model(model, Path(folder) / "bundle")
        with TextSession(bundle, threads=threads) as session:
            return {name: score_patterns(session, texts, options) for name, options in _SAMPLERS.items()}


def _code(model: Path | None, causal: Path | None, count: int, tokens: int, threads: int) -> Rows:
    from retouch.validation.text._causal import complete_causally

    prompts = code_prompts(count)
    scores: dict[str, CodeScore] = {}
    if model is not None:
        with tempfile.TemporaryDirectory() as folder:
            bundle = export_language_model(model, Path(folder) / "bundle")
            with TextSession(bundle, threads=threads) as session:
                for name, options in _SAMPLERS.items():
                    scores[name] = score_code(prompts, partial(_completed, session, tokens, options))
    if causal is not None:
        network, tokenizer = load_code_lm(causal), load_tokenizer(causal)
        scores["autoregressive"] = score_code(prompts, partial(complete_causally, network, tokenizer, tokens))
    return scores


def _completed(session: TextSession, tokens: int, options: SamplerOptions, prompt: str) -> Completion:
    made = session.generate(prompt, tokens, options=options, record=False)
    assert isinstance(made.report, TextReport)
    ended = made.tokens[-1] == session.model.spec.eos_id
    report = made.report
    return Completion(
        made.text, bool(ended), report.tokens, len(made.text) - len(prompt), report.forwards, report.edited
    )


def _write(path: Path, bits: Mapping[str, float], scores: Mapping[str, Rows]) -> None:
    data: dict[str, Any] = {"bits_per_character": bits}
    for name, rows in scores.items():
        data[name] = {sampler: dataclasses.asdict(score) for sampler, score in rows.items()}
    path.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")


def _bits_table(bits: Mapping[str, float]) -> Table:
    table = Table("held-out corpus", "bits per character")
    for name, value in bits.items():
        table.add_row(name, f"{value:.3f}")
    return table


def _table(name: str, rows: Rows) -> Table:
    columns = [field.name for field in dataclasses.fields(next(iter(rows.values())))]
    table = Table(name, *(column.replace("_", " ") for column in columns))
    for sampler, score in rows.items():
        values = (getattr(score, column) for column in columns)
        shares = {"exact", "right", "accepted", "unfinished"}
        texts = (
            f"{value:.1%}" if column in shares else f"{value:.2f}"
            for column, value in zip(columns, values, strict=True)
        )
        table.add_row(sampler, *texts)
    return table
