"""No cache: every forward computes everything."""

from __future__ import annotations

from dataclasses import dataclass

from retouch.text.full_attention._policy import Canvas, Moment, Planner, RowPlan


@dataclass(frozen=True)
class NoCache:
    """Every forward computes all rows: what the model itself gives."""

    def start(self, canvas: Canvas) -> Planner:
        """See :class:`CachePolicy`."""
        return _Planner(canvas)


@dataclass(frozen=True, eq=False)
class _Planner:
    canvas: Canvas

    def plan(self, _: Moment) -> RowPlan:
        return RowPlan(self.canvas.every)
