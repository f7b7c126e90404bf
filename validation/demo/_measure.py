"""Time and fidelity of one edit."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retouch.region import Region

_REPEATS = 9
_RING = 8
_PEAK = 2.0


@dataclass(frozen=True)
class Measured:
    """What was measured of an edit: process CPU time in ms, and PSNR in dB against a full recomputation."""

    name: str
    area: float
    edit_ms: float
    full_ms: float
    inside: float
    near: float
    outside: float
    identical: bool

    @property
    def ratio(self) -> float:
        """Edit time over full time."""
        return self.edit_ms / self.full_ms


def interleaved(edit: Callable[[], object], full: Callable[[], object]) -> tuple[float, float]:
    """Median process CPU time in ms of both, run in turn after one warm-up each."""
    times: tuple[list[float], list[float]] = ([], [])
    for action in (edit, full):
        action()
    for _ in range(_REPEATS):
        for action, spent in zip((edit, full), times, strict=True):
            start = time.process_time()
            action()
            spent.append(time.process_time() - start)
    return 1e3 * float(np.median(times[0])), 1e3 * float(np.median(times[1]))


def fidelity(got: NDArray[Any], expected: NDArray[Any], region: Region) -> tuple[float, float, float]:
    """PSNR inside the region, in a ring of eight positions around it, and beyond."""
    ring = _grown(region.mask, _RING)
    error = np.asarray(got - expected, dtype=np.float64).reshape(region.mask.shape)
    inside, near, outside = (_psnr(error[part]) for part in (region.mask, ring & ~region.mask, ~ring))
    return inside, near, outside


def _psnr(error: NDArray[np.float64]) -> float:
    return float(10 * np.log10(_PEAK**2 / max(float(np.mean(error**2)), 1e-12)))


def _grown(mask: NDArray[np.bool_], steps: int) -> NDArray[np.bool_]:
    grown = mask.copy()
    for axis in (0, 1):
        for _ in range(steps):
            wide = grown.copy()
            first, last = (slice(1, None), slice(None, -1))
            a: list[slice] = [slice(None)] * 2
            b: list[slice] = [slice(None)] * 2
            a[axis], b[axis] = first, last
            wide[tuple(a)] |= grown[tuple(b)]
            wide[tuple(b)] |= grown[tuple(a)]
            grown = wide
    return grown
