"""A text while it is made: blocks being filled and edited."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Self

import numpy as np
from rich.console import Console, Group
from rich.live import Live
from rich.panel import Panel
from rich.text import Text

from retouch.text import Step
from retouch.tokens import Tokenizer

__all__ = ["TextView"]

_SHOWN_LINES = 24
_MASK, _TOKEN = "\N{MEDIUM SHADE}", "\N{FULL BLOCK}"
_STYLES = {"given": "dim", "settled": "", "filled": "bold green", "edited": "bold black on yellow", "masked": "blue"}


class TextView:
    """A context manager: shows the last lines of a text on standard error, if that is a terminal.

    New tokens are green, replaced ones yellow, those that are still to be chosen shaded.
    """

    def __init__(self, tokenizer: Tokenizer | None, mask_id: int, tokens: np.ndarray, given: int) -> None:
        """Shows nothing yet.

        Args:
            tokenizer: knows the tokens' texts; without one, only masks and how many tokens there are can be shown.
            mask_id: id of the mask.
            tokens: the text so far; the blocks that are told of later are put in.
            given: so many tokens, the first ones, are shown as given.
        """
        self._tokenizer = tokenizer
        self._mask_id = mask_id
        self._tokens = np.array(tokens)
        self._kinds = ["given"] * given + ["settled"] * (len(tokens) - given)
        self._given = given
        self._steps = self._edits = 0
        self._started = time.perf_counter()
        self._live = Live(console=Console(stderr=True), transient=True, refresh_per_second=15)

    def __enter__(self) -> Self:
        self._live.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.__exit__(kind, error, trace)

    def told(self, step: Step) -> None:
        """Shows a step."""
        self._put(step)
        self._steps += 1
        self._edits += int(step.edited.sum())
        if self._live.console.is_terminal:
            self._live.update(self.picture())

    def picture(self) -> Group:
        """The text as it is, and what it took so far."""
        seconds = time.perf_counter() - self._started
        status = f"{self._steps} steps, {self._edits} tokens edited, {seconds:.1f} s"
        return Group(Panel(self._body(), title="text", title_align="left"), Text(status, "dim"))

    def _put(self, step: Step) -> None:
        end = step.start + len(step.tokens)
        missing = end - len(self._tokens)
        if missing > 0:
            self._tokens = np.concatenate((self._tokens, np.full(missing, self._mask_id)))
            self._kinds += ["masked"] * missing
        before = self._tokens[step.start : end]
        changed = step.filled | step.edited
        for offset, token in enumerate(step.tokens):
            place = step.start + offset
            if place < self._given:
                continue
            if token == self._mask_id:
                self._kinds[place] = "masked"
            elif changed[offset]:
                self._kinds[place] = "edited" if step.edited[offset] else "filled"
            elif self._kinds[place] == "masked" or before[offset] == token:
                self._kinds[place] = "settled"
        self._tokens[step.start : end] = step.tokens

    def _body(self) -> Text:
        ids: list[int] = self._tokens.tolist()
        pieces = [_TOKEN] * len(ids) if self._tokenizer is None else self._tokenizer.pieces(ids)
        body = Text()
        for piece, kind in zip(pieces, self._kinds, strict=True):
            body.append(_MASK if kind == "masked" else piece, _STYLES[kind])
        lines = body.split("\n")
        return Text("\n").join(lines[-_SHOWN_LINES:])
