"""Keys and values of tokens that are set, kept one step after they were (dKV-Cache)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from retouch.text.full_attention._policy import Canvas, Moment, Planner, RowPlan, check_interval


@dataclass(frozen=True)
class DelayedCache:
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
        check_interval("interval", self.interval)
        if self.window is not None:
            check_interval("window", self.window, 0)

    def start(self, canvas: Canvas) -> Planner:
        """See :class:`CachePolicy`."""
        return _Planner(canvas, self)


@dataclass(frozen=True, eq=False)
class _Planner:
    canvas: Canvas
    policy: DelayedCache

    def plan(self, moment: Moment) -> RowPlan:
        if moment.step <= 1 or moment.step % self.policy.interval == 0:
            return RowPlan(self.canvas.every)
        wanted = np.union1d(moment.targets, moment.just_set)
        if self.policy.window is None:
            return RowPlan(np.union1d(wanted, np.flatnonzero(moment.masked)))
        near = moment.near(self.policy.window)
        return RowPlan(np.union1d(wanted, near[near >= self.canvas.prompt]))
