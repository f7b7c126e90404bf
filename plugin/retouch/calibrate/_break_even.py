"""Where measured ratios cross one."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

NEVER = 2.0
"""Stands for "the edit graph is faster even where every row is active": no edit has such a share of the FLOPs."""


def crossing(points: Sequence[tuple[float, float]]) -> float:
    """The FLOP share at which an edit takes as long as the full model.

    Between two measured points the ratio is taken to be a straight line, below the first one too, down to nothing.

    Args:
        points: pairs of FLOP share and edit time / full time.

    Returns:
        The share; above one if the edit graph was faster at every point.
    """
    ordered = [(0.0, 0.0), *sorted(points)]
    for (share, ratio), (next_share, next_ratio) in pairwise(ordered):
        if next_ratio >= 1.0:
            return share + (next_share - share) * (1.0 - ratio) / (next_ratio - ratio)
    return NEVER
