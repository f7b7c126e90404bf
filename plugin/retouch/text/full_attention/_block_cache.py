"""Keys and values kept while a block is filled (Fast-dLLM)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np

from retouch.text.full_attention._policy import Canvas, Moment, Planner, RowPlan


class Kept(Enum):
    """What stays as the block's first forward computed it."""

    PREFIX = "prefix"
    """What stands before the block; the block and all behind it are computed in every step."""
    DUAL = "dual"
    """All but the block."""


@dataclass(frozen=True)
class BlockCache:
    """Fast-dLLM's caches (https://arxiv.org/abs/2505.22618): what a block's first, full forward computed is kept.

    Attributes:
        kept: what is kept.
    """

    kept: Kept = Kept.DUAL

    def start(self, canvas: Canvas) -> Planner:
        """See :class:`CachePolicy`."""
        return _Planner(canvas, self.kept)


@dataclass(frozen=True, eq=False)
class _Planner:
    canvas: Canvas
    kept: Kept

    def plan(self, moment: Moment) -> RowPlan:
        if moment.block_step == 0:
            return RowPlan(self.canvas.every)
        if self.kept is Kept.DUAL:
            return RowPlan(moment.block_rows)
        return RowPlan(np.arange(moment.block_rows[0], self.canvas.rows))
