"""Active rows of joint sequences: those of the grid in them, and perhaps the tokens beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from retouch.bundle import GridSpec


def with_joint(masks: Mapping[str, NDArray[np.bool_]], grids: Sequence[GridSpec]) -> dict[str, NDArray[np.bool_]]:
    """The masks of the other grids, and those of the joint ones, which follow from them.

    Args:
        masks: one mask per grid that is not joint.
        grids: all grids, or some of them.
    """
    found = dict(masks)
    for grid in grids:
        if grid.joint is not None:
            before, after = (np.full(n, grid.joint.recomputed) for n in (grid.joint.before, grid.joint.after))
            found[grid.id] = np.concatenate([before, masks[grid.joint.grid].reshape(-1), after])
    return found
