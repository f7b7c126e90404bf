"""Times actions against each other."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Sample:
    """Medians of one action, in milliseconds.

    Attributes:
        cpu_ms: CPU time of the process, all threads together.
        wall_ms: time on the clock.
    """

    cpu_ms: float
    wall_ms: float


def interleaved(
    actions: Mapping[str, Callable[[], object]],
    repeats: int = 9,
    *,
    warm_ups: int = 2,
    progress: Callable[[str], None] | None = None,
) -> dict[str, Sample]:
    """The medians of the actions, run in turn so that a busy machine slows all of them alike.

    Args:
        actions: what to time, by name.
        repeats: rounds that count.
        warm_ups: rounds before them that do not.
        progress: called with a line before every round.
    """
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in actions}
    for index in range(warm_ups + repeats):
        if progress is not None:
            progress("warm up" if index < warm_ups else f"round {index - warm_ups + 1} of {repeats}")
        for name, action in actions.items():
            times[name].append(_time(action))
    medians = {name: np.median(rounds[warm_ups:], axis=0) for name, rounds in times.items()}
    return {name: Sample(1e3 * float(cpu), 1e3 * float(wall)) for name, (cpu, wall) in medians.items()}


def _time(action: Callable[[], object]) -> tuple[float, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    action()
    return time.process_time() - cpu, time.perf_counter() - wall
