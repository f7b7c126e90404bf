"""Time and fidelity of one edit."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from retouch.validation.psnr import Psnr

_REPEATS = 9


@dataclass(frozen=True)
class Measured:
    """What was measured of an edit: process CPU time in ms, and PSNR against a full recomputation."""

    name: str
    area: float
    edit_ms: float
    full_ms: float
    psnr: Psnr
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
