"""Active rows of grids whose rows follow from those of other grids."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from retouch.bundle import GridSpec, ViewSpec

Dims = tuple[int, ...]
Rows = NDArray[np.int64]


def with_derived(rows: Mapping[str, Rows], grids: Sequence[GridSpec]) -> dict[str, Rows]:
    """The active rows of some grids, and those of the grids that follow from them.

    Rows stand in the order in which an edit computes them: ascending, but those of a view in the order of its grid's,
    and those of a joint sequence around its grid's in theirs.

    Args:
        rows: the active rows of at least the resolution levels.
        grids: all grids, or some of them; every one behind those that it follows from.
    """
    found, dims = dict(rows), {grid.id: grid.dims for grid in grids}
    for grid in grids:
        if grid.id not in found and grid.parent is not None:
            found[grid.id] = _follow(grid, found[grid.parent], dims[grid.parent])
    return found


def block_of_rows(rows: Rows, dims: Dims, blocks: Dims) -> Rows:
    """The block that each row of a grid of ``dims`` is in; blocks have one for the axes within a block."""
    coordinates = np.unravel_index(rows, dims)
    kept = [np.zeros_like(c) if size == 1 else c for c, size in zip(coordinates, blocks, strict=True)]
    return np.asarray(np.ravel_multi_index(kept, blocks), np.int64)


def _follow(grid: GridSpec, rows: Rows, dims: Dims) -> Rows:
    if grid.view is not None:
        return _places(grid.view, dims)[rows]
    if grid.blocks is not None:
        return np.unique(block_of_rows(rows, dims, grid.dims))
    if grid.picked is not None:
        mask = np.zeros(dims, np.bool_)
        mask.reshape(-1)[rows] = True
        for axis, positions in enumerate(grid.picked.positions):
            # Behind the last position stands one that nothing reads from.
            none = [(0, int(other == axis)) for other in range(mask.ndim)]
            mask = np.pad(mask, none).take(np.array(positions, np.int64), axis=axis)
        return np.flatnonzero(mask).astype(np.int64, copy=False)
    assert grid.joint is not None
    before, after, last = grid.joint.before, grid.joint.after, grid.joint.before + math.prod(dims)
    if not grid.joint.recomputed:
        return rows + before
    return np.concatenate([np.arange(before), rows + before, np.arange(last, last + after)])


@lru_cache(maxsize=64)
def _places(view: ViewSpec, dims: Dims) -> Rows:
    """The place in a view of every row of its grid."""
    counts = [count for digits in view.digits for _, count, _ in digits]
    coordinates = [np.zeros(counts, np.int64) for _ in dims]
    for number, (axis, count, stride) in enumerate(digit for digits in view.digits for digit in digits):
        shape = [1] * len(counts)
        shape[number] = count
        coordinates[axis] += stride * np.arange(count).reshape(shape)
    turned = [np.array(turn, np.int64)[places] for turn, places in zip(view.turns, coordinates, strict=True)]
    order = np.ravel_multi_index(turned, dims).reshape(-1)
    places = np.empty_like(order)
    places[order] = np.arange(order.size)
    places.setflags(write=False)
    return places
