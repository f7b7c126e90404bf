"""What several edits of one run cost together, against one by one."""

from __future__ import annotations

__all__ = ["StackTime", "measure_stack"]

from retouch.validation.stacks._measure import StackTime, measure_stack
