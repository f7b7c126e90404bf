"""A cache that leaves out what lies far behind the block."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from retouch.text._options import check_count
from retouch.text.full_attention._policy import CachePolicy, Canvas, Moment, Planner, RowPlan, Rows


@dataclass(frozen=True)
class Horizon:
    """Rows farther behind the block than this are neither computed nor seen; in front of that a cache is at work.

    They hold masks alone, which say little more than how long the text is (suffix dropout, as in DPad,
    https://arxiv.org/abs/2508.14148, which keeps some of the far ones). Nothing of them is used, so nothing of them
    grows old. Rows that come into view are computed. A text's first forward computes everything, as under every policy,
    and sees it.

    Attributes:
        policy: the cache.
        reach: so many rows behind the block are seen.
    """

    policy: CachePolicy
    reach: int = 64

    def __post_init__(self) -> None:
        """Checks the number.

        Raises:
            SamplingError: it is out of its range.
        """
        check_count("reach", self.reach, 0)

    def start(self, canvas: Canvas) -> Planner:
        """See :class:`CachePolicy`."""
        return _Planner(canvas, self.policy.start(canvas), self.reach)


@dataclass(eq=False)
class _Planner:
    canvas: Canvas
    inner: Planner
    reach: int
    _end: int = 0
    """The row behind the last one that was in view."""

    def plan(self, moment: Moment) -> RowPlan:
        plan = self.inner.plan(moment)
        end = min(moment.block[1] + self.reach, self.canvas.rows)
        new, self._end = np.arange(self._end, end), max(self._end, end)
        rows = tuple(_within(own, new, end) for own in plan.by_layer(self.canvas.spec.layers))
        candidates = np.setdiff1d(plan.candidates[plan.candidates < end], new, assume_unique=True)
        count = plan.count * len(candidates) // max(len(plan.candidates), 1)
        context = plan.context
        if end < self.canvas.rows:
            context = np.arange(end) if context is None else context[context < end]
        return replace(plan, rows=rows, candidates=candidates, count=count, context=context)


def _within(rows: Rows, new: Rows, end: int) -> Rows:
    seen = rows[rows < end]
    return np.union1d(seen, new) if len(new) else seen
