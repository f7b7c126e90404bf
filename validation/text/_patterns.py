"""How well, and in how few reads, patterns are completed that follow from their first line."""

from __future__ import annotations

from dataclasses import dataclass

from retouch.text import SamplerOptions, TextReport, TextSession

__all__ = ["PatternScore", "score_patterns"]


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
