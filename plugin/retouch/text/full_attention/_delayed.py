"""Keys and values of tokens that are set, kept one step after they were (dKV-Cache)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from retouch.text._options import check_count
from retouch.text.full_attention._policy import Canvas, MemorylessPolicy, Moment, RowPlan


@dataclass(frozen=True)
class DelayedCache(MemorylessPolicy):
    """dKV-Cache (https://arxiv.org/abs/2505.15781): tokens that were set before the last step are not computed.

    A token's keys and values change most when it is set, so it is computed once more after that.

    Attributes:
        interval: every so many forwards one computes everything; so do the first two.
        window: dKV-Cache-Greedy: of the masks, only the targets and those within so many rows of tokens that were just
            set are computed; ``None`` means all masks (dKV-Cache-Decode).
    """

    interval: int = 8
    window: int | None = None

    def __post_init__(self) -> None:
        """Checks every number.

        Raises:
            SamplingError: one is out of its range.
        """
        check_count("interval", self.interval, 1)
        if self.window is not None:
            check_count("window", self.window, 0)

    def plan(self, canvas: Canvas, moment: Moment) -> RowPlan:
        """See :class:`MemorylessPolicy`."""
        if moment.step <= 1 or moment.step % self.interval == 0:
            return RowPlan(canvas.every)
        wanted = np.union1d(moment.targets, moment.just_set)
        if self.window is None:
            return RowPlan(np.union1d(wanted, np.flatnonzero(moment.masked)))
        near = moment.near(self.window)
        return RowPlan(np.union1d(wanted, near[near >= canvas.prompt]))
