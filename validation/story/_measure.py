"""Process CPU time of an edit and of a generation anew, in turn."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

__all__ = ["interleaved"]


def interleaved(edit: Callable[[], object], full: Callable[[], object], repeats: int) -> tuple[float, float]:
    """Median process CPU time in ms of both, run in turn after one warm-up each."""
    spent: tuple[list[float], list[float]] = ([], [])
    edit(), full()
    for _ in range(repeats):
        for action, times in zip((edit, full), spent, strict=True):
            start = time.process_time()
            action()
            times.append(time.process_time() - start)
    return 1e3 * float(np.median(spent[0])), 1e3 * float(np.median(spent[1]))
