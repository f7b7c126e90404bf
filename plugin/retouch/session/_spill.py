"""How much of what an edit changes lies outside of its region, known once it was computed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retouch.session._shift import channels_first

_LEAST = 1e-4


def spill(before: NDArray[Any], after: NDArray[Any], axes: Sequence[int], inside: NDArray[np.bool_]) -> float:
    """The logarithm of the mean change outside of a region over that inside.

    Rows around a region answer its change, and those that are computed show it. The others would answer too; that is
    what an edit misses.

    Args:
        before: an output of the base run.
        after: that of the edit.
        axes: where its positions lie.
        inside: the region on these positions.
    """
    change = np.abs(np.subtract(channels_first(after, axes), channels_first(before, axes), dtype=np.float32)).mean(0)
    count, within = np.count_nonzero(inside), float(change[inside].sum(dtype=np.float64))
    without = float(change.sum(dtype=np.float64)) - within
    if within <= 0.0 or count == inside.size:
        return math.log(_LEAST)
    return math.log(max(0.0, without) / (inside.size - count) * count / within + _LEAST)
