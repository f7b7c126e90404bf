"""Outputs, checked for NaN and infinity."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from retouch.errors import NonFiniteError


def check_finite(output: str, array: NDArray[Any]) -> None:
    """Raise a NonFiniteError if the array, all or part of that output, holds NaN or infinity."""
    # A sum is finite only if every element is, and costs a fraction of a test per element.
    if array.dtype.kind != "f" or np.isfinite(_sum(array)):
        return
    bad = ~np.isfinite(array)
    if not bad.any():
        return
    raise NonFiniteError(
        f"Expected finite numbers in output {output!r}, got {int(np.isnan(array).sum())} NaN and "
        f"{int(np.isinf(array).sum())} infinite elements out of {array.size}. Look for NaN or out-of-range values in "
        "the feeds; a float16 model that overflows has to be exported in float32."
    )


def _sum(array: NDArray[Any]) -> np.floating[Any]:
    with np.errstate(all="ignore"):
        total: np.floating[Any] = np.sum(array)
    return total
