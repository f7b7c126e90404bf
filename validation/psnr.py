"""How far an edit is from a full recomputation: inside its region, close to it, and beyond."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retouch.region import Region

__all__ = ["Psnr", "measure_psnr", "psnr"]

_RING = 8
_CEILING_ERROR = 1e-12


@dataclass(frozen=True)
class Psnr:
    """Peak signal-to-noise ratios in dB.

    Attributes:
        inside: in the region.
        near: in a ring of eight positions around it.
        outside: beyond the ring.
    """

    inside: float
    near: float
    outside: float


def measure_psnr(got: NDArray[Any], expected: NDArray[Any], region: Region, *, peak: float) -> Psnr:
    """The ratios of an output with as many positions as the region's mask.

    Args:
        got: the edit's output.
        expected: the full recomputation's.
        region: the edit's region; its mask is used as it is, its policy plays no part.
        peak: the largest difference that two outputs can have, which is the signal's range.
    """
    error = np.asarray(got - expected, dtype=np.float64).reshape(-1, *region.mask.shape)
    ring = _grown(region.mask, _RING)
    parts = (region.mask, ring & ~region.mask, ~ring)
    inside, near, outside = (psnr(error[:, part], peak) for part in parts)
    return Psnr(inside, near, outside)


def _grown(mask: NDArray[np.bool_], steps: int) -> NDArray[np.bool_]:
    grown: NDArray[np.bool_] = mask
    for axis in range(mask.ndim):
        padded = np.pad(grown, [(steps, steps) if other == axis else (0, 0) for other in range(mask.ndim)])
        grown = np.any(np.lib.stride_tricks.sliding_window_view(padded, 2 * steps + 1, axis), axis=-1)
    return grown


def psnr(error: NDArray[np.float64], peak: float) -> float:
    """The ratio of errors, infinite if there are none and 120 dB for a peak of one where all are zero."""
    if not error.size:
        return float("inf")
    return float(10 * np.log10(peak**2 / max(float(np.mean(error**2)), _CEILING_ERROR)))
