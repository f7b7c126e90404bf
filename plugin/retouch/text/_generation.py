"""A text that was made, with what it takes to edit it."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field

from retouch.text._model import Tokens
from retouch.text._options import SamplerOptions
from retouch.text._settle import Tally


@dataclass(frozen=True)
class TextReport:
    """What making a text took.

    Attributes:
        tokens: new tokens, the end included.
        prefilled: tokens of the prompt that were read at once.
        forwards: reads of the model after that.
        read: tokens that were read in all; without a cache, those that the reads were asked for.
        filled: masked tokens that were set.
        edited: tokens that were replaced by others.
        mask_choices: how often the model's likeliest token at a masked position was the mask.
        oscillations: blocks that were stopped because their edits went in circles.
        exhausted: blocks that ended because their budget of edits was used up.
        cached: whether keys and values were kept.
        seconds: wall time.
    """

    tokens: int
    prefilled: int
    forwards: int
    read: int
    filled: int
    edited: int
    mask_choices: int
    oscillations: int
    exhausted: int
    cached: bool
    seconds: float

    @classmethod
    def of(
        cls, tally: Tally, *, tokens: int, prefilled: int, reads: int, read: int, cached: bool, seconds: float
    ) -> TextReport:
        """The report of what was counted."""
        return cls(
            tokens=tokens,
            prefilled=prefilled,
            forwards=reads - (prefilled > 0),
            read=read,
            filled=tally.filled,
            edited=tally.edited,
            mask_choices=tally.mask_choices,
            oscillations=tally.oscillations,
            exhausted=tally.exhausted,
            cached=cached,
            seconds=seconds,
        )

    @property
    def tokens_per_forward(self) -> float:
        """New tokens over reads; 0 if nothing was read."""
        return self.tokens / self.forwards if self.forwards else 0.0

    def __str__(self) -> str:
        speed = self.tokens / self.seconds if self.seconds else 0.0
        return (
            f"{self.tokens} tokens in {self.forwards} forwards ({self.tokens_per_forward:.2f} tokens per forward), "
            f"{self.edited} edited, {self.seconds:.2f} s ({speed:.0f} tokens/s)"
        )


@dataclass(frozen=True)
class EditReport:
    """What an edit took.

    Attributes:
        mode: the mode that was used, by name.
        reason: why that one.
        forwards: reads of the model.
        recomputed: tokens that were read, all reads together.
        settled: blocks in which tokens were chosen anew.
        refreshed: blocks that were read again as they were.
        kept: blocks that were not read.
        changed: tokens that differ from the base's at their place, and those that were put in or taken out.
        disagreed: tokens that ``verify`` had chosen anew.
        edited: tokens that were replaced by others on the way.
        oscillations: blocks that were stopped because their edits went in circles.
        seconds: wall time.
    """

    mode: str
    reason: str
    forwards: int
    recomputed: int
    settled: int
    refreshed: int
    kept: int
    changed: int
    disagreed: int
    edited: int
    oscillations: int
    seconds: float

    def __str__(self) -> str:
        return (
            f"{self.mode} ({self.reason}): {self.changed} tokens changed in {self.forwards} forwards of "
            f"{self.recomputed} tokens; blocks: {self.settled} chosen anew, {self.refreshed} refreshed, "
            f"{self.kept} kept; {self.seconds:.3f} s"
        )


@dataclass(frozen=True, eq=False)
class Generation:
    """A text that was made. Its keys and values are kept under its id, where it was recorded.

    Attributes:
        id: the run's id.
        tokens: prompt and answer (read-only).
        prompt_tokens: how many of them are the prompt.
        text: the same as text; empty without a tokenizer.
        options: how it was sampled.
        seed: seed of what was drawn.
        report: what it took; of an edit, an :class:`EditReport`.
        base: the generation that it is an edit of.
        padded: its tokens to the end of the last block, as the model read them.
    """

    id: str
    tokens: Tokens = field(repr=False)
    prompt_tokens: int
    text: str = field(repr=False)
    options: SamplerOptions = field(repr=False)
    seed: int
    report: TextReport | EditReport
    base: Generation | None = field(default=None, repr=False)
    padded: Tokens = field(repr=False, kw_only=True)

    @property
    def answer(self) -> Tokens:
        """The tokens after the prompt."""
        return self.tokens[self.prompt_tokens :]


def new_id() -> str:
    """The id of a new run."""
    return secrets.token_hex(6)


def read_only(tokens: Tokens) -> Tokens:
    """A copy that nobody changes."""
    kept = tokens.copy()
    kept.setflags(write=False)
    return kept
