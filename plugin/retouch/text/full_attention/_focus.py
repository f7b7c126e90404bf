"""Editable attention: rows in focus see a part of the text, which follows them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from retouch.errors import SamplingError
from retouch.text._options import check_count, check_share
from retouch.text.full_attention._patterns import Pattern, pattern_rows, with_least
from retouch.text.full_attention._policy import (
    NO_ROWS,
    Canvas,
    Moment,
    Planner,
    RowPlan,
    Rows,
)
from retouch.tokens import Tokenizer

SEPARATORS = "()[]{}<>,;:.\"'\n"


@dataclass(frozen=True)
class FocusCache:
    """Only rows in focus are computed, and they see a part of the text only.

    In focus are the masks that may be set next, and tokens that were just set. What they see is a window around their
    block, what ``pattern`` adds, and tokens of exempt kinds. After every ``refresh`` tokens that were set this is
    chosen anew, and all of it is computed. After every ``rescore`` tokens all rows are computed and see everything, and
    tokens that were set may be revised.

    Attributes:
        pattern: what is seen beside the window.
        window: how far the window reaches on both sides of the block.
        stride: ``SKIP`` shows one row in so many.
        refresh: tokens after which the choice is made anew.
        least_context: at least so many tokens that are no masks are seen.
        exempt: ids of tokens that are always seen, such as brackets and line feeds (:func:`separator_ids`).
        rescore: tokens after which everything is computed; ``None`` means never.
        revise: then a token is replaced where another has a confidence above this; ``None`` means never.
        smoothing: how much of the values that were there stays in those of computed rows: 0.1 makes new values nine
            tenths of what is kept. Not in forwards that compute everything.
    """

    pattern: Pattern = Pattern.WINDOW
    window: int = 32
    stride: int = 8
    refresh: int = 12
    least_context: int = 3
    exempt: tuple[int, ...] = ()
    rescore: int | None = 50
    revise: float | None = 0.9
    smoothing: float = 0.0

    def __post_init__(self) -> None:
        """Checks every number.

        Raises:
            SamplingError: one is out of its range.
        """
        check_count("window", self.window, 0)
        check_count("stride", self.stride, 1)
        check_count("refresh", self.refresh, 1)
        check_count("least_context", self.least_context, 0)
        if self.rescore is not None:
            check_count("rescore", self.rescore, 1)
        if self.revise is not None:
            check_share("revise", self.revise)
        check_share("smoothing", self.smoothing)

    def start(self, canvas: Canvas) -> Planner:
        """See :class:`CachePolicy`.

        Raises:
            SamplingError: the model has no such exempt token.
        """
        wrong = [token for token in self.exempt if not 0 <= token < canvas.spec.vocabulary]
        if wrong:
            raise SamplingError(f"Expected exempt ids from 0 to {canvas.spec.vocabulary - 1}, got {wrong[0]}.")
        return _Planner(canvas, self)


def separator_ids(tokenizer: Tokenizer, vocabulary: int, characters: Iterable[str] = SEPARATORS) -> tuple[int, ...]:
    """The ids of tokens that consist of brackets, separators and line feeds, for :attr:`FocusCache.exempt`.

    Args:
        tokenizer: the tokenizer.
        vocabulary: number of ids.
        characters: what counts as such.
    """
    allowed = set(characters)
    pieces = enumerate(tokenizer.pieces(range(vocabulary)))
    return tuple(token for token, piece in pieces if piece.strip(" ") and set(piece) - {" "} <= allowed)


@dataclass(eq=False)
class _Planner:
    canvas: Canvas
    policy: FocusCache
    _context: Rows = field(default_factory=lambda: NO_ROWS)
    _block: tuple[int, int] = (-1, -1)
    _refreshed: int = 0
    _rescored: int = 0

    def plan(self, moment: Moment) -> RowPlan:
        policy, every = self.policy, self.canvas.every
        if moment.step == 0:
            self._choose(moment)
            return RowPlan(every)
        if policy.rescore is not None and moment.set_count - self._rescored >= policy.rescore:
            self._rescored = moment.set_count
            self._choose(moment)
            return RowPlan(every, revise=policy.revise)
        focus = np.union1d(moment.targets, moment.just_set)
        if moment.block != self._block or moment.set_count - self._refreshed >= policy.refresh:
            self._choose(moment)
            focus = np.union1d(focus, self._context)
        return RowPlan(focus, context=np.union1d(self._context, focus), keep=policy.smoothing)

    def _choose(self, moment: Moment) -> None:
        policy, rows = self.policy, self.canvas.rows
        seen = pattern_rows(policy.pattern, moment.block, rows, policy.window, policy.stride)
        exempt = np.flatnonzero(np.isin(moment.tokens, policy.exempt) & ~moment.masked)
        seen = np.union1d(seen, exempt)
        self._context = with_least(seen, ~moment.masked, moment.block[0], policy.least_context)
        self._block, self._refreshed = moment.block, moment.set_count
