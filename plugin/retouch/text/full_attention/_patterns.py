"""Which rows the edited ones see: a window around them, and some farther away."""

from __future__ import annotations

from enum import Enum

import numpy as np

from retouch.text._step import Mask
from retouch.text.full_attention._policy import Rows


class Pattern(Enum):
    """What edited rows see beside the window around them."""

    WINDOW = "window"
    """Nothing."""
    SKIP = "skip"
    """Every so many rows one, in the whole text."""
    TREE = "tree"
    """Rows at distances that double: those on the way up in a binary tree over the text."""


def pattern_rows(pattern: Pattern, block: tuple[int, int], rows: int, window: int, stride: int) -> Rows:
    """The rows that those of a block see, in order.

    Args:
        pattern: which rows beside the window.
        block: first edited row, and the one behind the last.
        rows: rows of the text.
        window: how far the window reaches on both sides.
        stride: ``SKIP`` shows one row in so many.
    """
    low, high = max(block[0] - window, 0), min(block[1] + window, rows)
    near = np.arange(low, high)
    if pattern is Pattern.SKIP:
        return np.union1d(near, np.arange(0, rows, stride))
    if pattern is Pattern.TREE:
        distances = 2 ** np.arange(max(rows, 2).bit_length())
        far = np.concatenate((low - distances, high - 1 + distances))
        return np.union1d(near, far[(far >= 0) & (far < rows)])
    return near


def with_least(context: Rows, visible: Mask, around: int, least: int) -> Rows:
    """A context with the nearest rows added that are no masks, if it has fewer than ``least`` of them.

    Args:
        context: rows that are seen.
        visible: which rows of the text are no masks.
        around: the row whose neighbourhood counts.
        least: how many rows that are no masks there have to be; fewer if the text has fewer.
    """
    missing = least - int(visible[context].sum())
    if missing <= 0:
        return context
    others = np.setdiff1d(np.flatnonzero(visible), context)
    nearest = others[np.argsort(np.abs(others - around), kind="stable")[:missing]]
    return np.union1d(context, nearest)
