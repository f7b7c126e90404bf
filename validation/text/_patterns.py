"""How well, and in how few reads, patterns are completed that follow from their first line."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from retouch.models.code_lm import PATTERNS_MODEL, held_out_patterns
from retouch.models.decoders import export_language_model
from retouch.text import PRESETS, SamplerOptions, TextReport, TextSession

__all__ = ["PatternScore", "patterns_main", "score_patterns"]

ONE_BY_ONE = SamplerOptions(threshold=1.0, edit_threshold=None)
"""The most confident token in every read, and no edits."""


@dataclass(frozen=True)
class PatternScore:
    """What completing texts came to.

    Attributes:
        exact: share of texts that are right to the last character.
        right: share of characters that are right where they stand.
        tokens_per_forward: new tokens over reads.
        edited: tokens that were replaced, per text.
    """

    exact: float
    right: float
    tokens_per_forward: float
    edited: float


def score_patterns(session: TextSession, texts: list[str], options: SamplerOptions) -> PatternScore:
    """Completes texts from their first lines; all that follows is determined by it."""
    exact = right = wanted = tokens = forwards = edited = 0
    for text in texts:
        prompt = text[: text.index("\n") + 1]
        length = len(session.tokens_of(text)) - len(session.tokens_of(prompt)) + 1
        made = session.generate(prompt, length, options=options, record=False)
        rest, got = text[len(prompt) :], made.text[len(prompt) :]
        exact += rest == got
        right += sum(one == other for one, other in zip(rest, got, strict=False))
        wanted += len(rest)
        assert isinstance(made.report, TextReport)
        tokens += made.report.tokens
        forwards += made.report.forwards
        edited += made.report.edited
    return PatternScore(exact / len(texts), right / wanted, tokens / forwards, edited / len(texts))


def patterns_main(
    model: Annotated[Path, typer.Argument(help="Directory of a network.")] = PATTERNS_MODEL,
    bundle: Annotated[Path, typer.Option(help="Where its bundle goes.")] = Path("build/code_lm/patterns.bundle"),
    count: Annotated[int, typer.Option(min=1, help="Held-out texts.")] = 200,
) -> None:
    """Completes held-out patterns with every preset, and one token at a time."""
    texts = list(held_out_patterns(count))
    table = Table("sampler", "exact", "characters right", "tokens per forward", "edits a text")
    with TextSession(export_language_model(model, bundle)) as session:
        for name, options in {"one by one": ONE_BY_ONE, **PRESETS}.items():
            score = score_patterns(session, texts, options)
            figures = (
                f"{score.exact:.1%}",
                f"{score.right:.1%}",
                f"{score.tokens_per_forward:.2f}",
                f"{score.edited:.1f}",
            )
            table.add_row(name, *figures)
    Console().print(table)
