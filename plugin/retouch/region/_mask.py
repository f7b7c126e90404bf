"""Which keys the rows of stacked edits see."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from retouch.region._active import ActiveRows


def attention_mask(edits: Sequence[ActiveRows], queries: str, keys: str) -> NDArray[np.float32]:
    """Which columns every row of a stacked graph sees in attention [M, N + K]: one, or zero for what is hidden.

    The columns are the N cached rows of the key grid, then the K active ones of all edits. A row sees the active rows
    of its own edit, and the cached rows that its edit does not recompute.

    Args:
        edits: the active rows of every edit.
        queries: id of the grid of the M rows.
        keys: id of the key grid.
    """
    counts = [active.rows[keys].size for active in edits]
    cached = int(np.prod(edits[0].dims[keys]))
    own = np.zeros((len(edits), cached + sum(counts)), np.float32)
    own[:, :cached] = 1.0
    start = cached
    for edit, (active, count) in enumerate(zip(edits, counts, strict=True)):
        own[edit, active.rows[keys]] = 0.0
        own[edit, start : start + count] = 1.0
        start += count
    return np.repeat(own, [active.rows[queries].size for active in edits], axis=0)
