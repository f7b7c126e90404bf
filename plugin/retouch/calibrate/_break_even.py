"""Where measured ratios cross one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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


def around_crossing(sizes: int, ratio: Callable[[int], float]) -> dict[int, float]:
    """Ratios of some sizes by their number: of the last one below one and the first one that is not, and of few others.

    Args:
        sizes: how many there are, in order; larger ones are taken to have larger ratios.
        ratio: measures the ratio of one.
    """
    found: dict[int, float] = {}
    below, above = -1, sizes
    while above - below > 1:
        middle = (below + above) // 2
        found[middle] = ratio(middle)
        if found[middle] < 1.0:
            below = middle
        else:
            above = middle
    return found
