"""No cache: every forward computes everything."""

from __future__ import annotations

from dataclasses import dataclass

from retouch.text.full_attention._policy import Canvas, MemorylessPolicy, Moment, RowPlan


@dataclass(frozen=True)
class NoCache(MemorylessPolicy):
    """Every forward computes all rows: what the model itself gives."""

    def plan(self, canvas: Canvas, _: Moment) -> RowPlan:
        """See :class:`MemorylessPolicy`."""
        return RowPlan(canvas.every)
