"""Keys and values kept while a block is filled (Fast-dLLM)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np

from retouch.text.full_attention._policy import Canvas, MemorylessPolicy, Moment, RowPlan


class Kept(Enum):
    """What stays as the block's first forward computed it."""

    PREFIX = "prefix"
    """What stands before the block; the block and all behind it are computed in every step."""
    DUAL = "dual"
    """All but the block."""


@dataclass(frozen=True)
class BlockCache(MemorylessPolicy):
    """Fast-dLLM's caches (https://arxiv.org/abs/2505.22618): what a block's first, full forward computed is kept.

    Attributes:
        kept: what is kept.
    """

    kept: Kept = Kept.DUAL

    def plan(self, canvas: Canvas, moment: Moment) -> RowPlan:
        """See :class:`MemorylessPolicy`."""
        if moment.block_step == 0:
            return RowPlan(canvas.every)
        if self.kept is Kept.DUAL:
            return RowPlan(moment.block_rows)
        return RowPlan(np.arange(moment.block_rows[0], canvas.rows))
