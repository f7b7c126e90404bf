"""Which cells of a grid see a selected input position: dilation and down-sampling by "any" in one step.

A cell covers an interval of input positions along every axis. Dilating widens the interval, so that a cell is active
exactly if the box of its intervals holds a selected position. A table of prefix sums answers that for all cells of all
grids.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def prefix_sums(mask: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The number of selected positions before each position along all axes, one entry longer than the mask per axis."""
    sums = np.zeros([size + 1 for size in mask.shape], np.int64)
    inner = sums[tuple(slice(1, None) for _ in mask.shape)]
    inner[...] = mask
    for axis in range(mask.ndim):
        np.cumsum(inner, axis=axis, out=inner)
    return sums


def covered_cells(
    sums: NDArray[np.int64], dims: Sequence[int], *, dilation: int, cell_dilation: int
) -> NDArray[np.bool_]:
    """The cells of a grid of ``dims`` that see a selected position.

    Args:
        sums: the mask's prefix sums.
        dims: the grid's dims.
        dilation: steps by which the mask grows before it is down-sampled.
        cell_dilation: steps by which the result grows.
    """
    counts = sums
    for axis, cells in enumerate(dims):
        starts, stops = _intervals(sums.shape[axis] - 1, cells, dilation, cell_dilation)
        counts = counts.take(stops, axis=axis) - counts.take(starts, axis=axis)
    return counts > 0


def _intervals(
    positions: int, cells: int, dilation: int, cell_dilation: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """First and stop position that each cell along an axis sees."""
    dilation, cell_dilation = min(dilation, positions), min(cell_dilation, cells)
    cell = np.arange(cells, dtype=np.int64)
    first = np.maximum(cell - cell_dilation, 0)
    stop = np.minimum(cell + cell_dilation + 1, cells)
    starts = first * positions // cells
    stops = -(-stop * positions // cells)
    return np.maximum(starts - dilation, 0), np.minimum(stops + dilation, positions)
