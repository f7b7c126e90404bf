"""Which active rows stand in every block of a grid, as an edit graph wants to know."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from retouch.bundle import GridSpec
from retouch.region._active import ActiveRows
from retouch.region._derived import block_of_rows


def block_inputs(edits: Sequence[ActiveRows], grid: GridSpec) -> dict[str, NDArray[np.int64]]:
    """The inputs ``members.<id>`` [B, Q] and ``places.<id>`` [M] of a grid of blocks.

    ``members`` holds the places of the active rows of every active block among all active rows, the edits' one behind
    another; a block with fewer than Q repeats its first. ``places`` says where in those B * Q every active row stands.
    """
    assert grid.blocks is not None
    numbers, start = [], 0
    for active in edits:
        active.require(grid.blocks.grid)
        blocks = block_of_rows(active.rows[grid.blocks.grid], active.dims[grid.blocks.grid], grid.dims)
        numbers.append(start + np.searchsorted(active.rows[grid.id], blocks))
        start += active.rows[grid.id].size
    block = np.concatenate(numbers)
    counts = np.bincount(block, minlength=start)
    order = np.argsort(block, kind="stable")
    firsts = np.cumsum(counts) - counts
    slots = np.empty_like(block)
    slots[order] = np.arange(block.size) - firsts[block[order]]
    width = int(counts.max())
    members = np.repeat(order[firsts][:, None], width, axis=1)
    members[block, slots] = np.arange(block.size)
    return {f"members.{grid.id}": members, f"places.{grid.id}": block * width + slots}
