"""A text of a model with full attention, and what it took."""

from __future__ import annotations

from dataclasses import dataclass, field

from retouch.text._model import Tokens
from retouch.text.full_attention._audit import CacheErrors
from retouch.text.full_attention._denoising import RowTally


@dataclass(frozen=True)
class RowsReport:
    """What making a text took.

    Attributes:
        tokens: new tokens.
        forwards: forwards of the model.
        rows_computed: rows that were computed, over all layers and forwards.
        rows_total: rows that there were.
        flops_ratio: floating-point operations over those of the same forwards without a cache.
        mean_staleness: mean age of what forwards used, in steps.
        max_staleness: the greatest.
        revised: tokens that were replaced after they were set.
        seconds: wall time, without that of an audit.
        errors: how far the cache's forwards were from the model's own, if they were audited.
    """

    tokens: int
    forwards: int
    rows_computed: int
    rows_total: int
    flops_ratio: float
    mean_staleness: float
    max_staleness: int
    revised: int
    seconds: float
    errors: CacheErrors | None = None

    @classmethod
    def of(
        cls, tally: RowTally, tokens: int, revised: int, seconds: float, errors: CacheErrors | None = None
    ) -> RowsReport:
        """The report of what was counted."""
        return cls(
            tokens=tokens,
            forwards=tally.forwards,
            rows_computed=tally.computed,
            rows_total=tally.total,
            flops_ratio=tally.flops / tally.full_flops,
            mean_staleness=tally.ages / tally.forwards,
            max_staleness=tally.oldest,
            revised=revised,
            seconds=seconds,
            errors=errors,
        )

    def __str__(self) -> str:
        shares = f"{self.rows_computed / self.rows_total:.1%} of the rows, {self.flops_ratio:.1%} of the operations"
        ages = f"used rows {self.mean_staleness:.1f} steps old in the mean, at most {self.max_staleness}"
        text = f"{self.tokens} tokens in {self.forwards} forwards, {self.seconds:.2f} s; {shares}; {ages}"
        text += f"; {self.revised} tokens revised" if self.revised else ""
        return text if self.errors is None else f"{text}; {self.errors}"


@dataclass(frozen=True, eq=False)
class FilledText:
    """A text that was made.

    Attributes:
        tokens: the prompt and the answer.
        prompt_tokens: how many of them, the first ones, are the prompt.
        text: both as a text; empty without a tokenizer.
        report: what it took.
    """

    tokens: Tokens = field(repr=False)
    prompt_tokens: int
    text: str
    report: RowsReport
