"""How far an edit moves the statistics of the editable input, known before anything is computed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

_TINY = 1e-12
_SMALL = 0.03
"""Shifts are compared by ratio, those of less than this as if they were none."""

_ROUGHNESS_SEEN = 0.5
"""A region that is rougher or smoother by this much (natural logarithm) is of another kind; more makes it no other."""


@dataclass(frozen=True)
class Shift:
    """What an edit changes in its editable input, per position that it changes.

    Channels are joined by their root mean square. A shift of 1 moves the statistic of the whole input by as much as
    the share of positions that changed: a patch whose mean moves by one standard deviation has a ``mean`` of 1.

    Attributes:
        area: share of the positions that change.
        mean: shift of the mean, in standard deviations of the base run's input.
        variance: shift of the variance, relative to it.
        energy: mean square of the change, relative to the variance.
        roughness: shift of the mean square of differences between neighbours, relative to it, with its sign.
    """

    area: float
    mean: float
    variance: float
    energy: float
    roughness: float

    def features(self, conditions: Sequence[float]) -> tuple[float, ...]:
        """The coordinates in which errors are compared: logarithms of the shifts and of single-number conditions."""
        rougher = math.log(max(1.0 + self.roughness, 0.05))
        return (
            math.log(self.area),
            math.log(self.mean + _SMALL),
            math.log(self.variance + _SMALL),
            math.log(self.energy + _SMALL**2),
            rougher,
            min(abs(rougher), _ROUGHNESS_SEEN),
            *(math.log(abs(value) + 1e-3) for value in conditions),
        )

    def __str__(self) -> str:
        area, mean, variance, energy, roughness = astuple(self)
        return (
            f"{area:.1%} changed: mean {mean:.2g}, variance {variance:.2g}, energy {energy:.2g}, "
            f"roughness {roughness:+.2g}"
        )


@dataclass(frozen=True)
class Statistics:
    """Sums over an input's positions, per channel [C]: what a shift is relative to."""

    mean: NDArray[np.float64]
    variance: NDArray[np.float64]
    roughness: NDArray[np.float64]


def channels_first(feed: NDArray[Any], axes: Sequence[int]) -> NDArray[Any]:
    """A view or copy [C, *dims] of a feed whose positions lie on those axes."""
    others = [axis for axis in range(feed.ndim) if axis not in axes]
    moved = feed.transpose([*others, *axes])
    return moved.reshape(-1, *(feed.shape[axis] for axis in axes))


def statistics(feed: NDArray[Any]) -> Statistics:
    """The statistics of an input [C, *dims]."""
    flat = feed.reshape(len(feed), -1)
    return Statistics(flat.mean(1, dtype=np.float64), flat.var(1, dtype=np.float64), _roughness(feed))


def measure_shift(
    base: NDArray[Any], edited: NDArray[Any], active: NDArray[np.bool_], before: Statistics
) -> Shift | None:
    """The shift from one input [C, *dims] to another, ``None`` if no active position changes.

    Args:
        base: the base run's input.
        edited: the edit's.
        active: the positions [*dims] that the edit computes; others count as unchanged.
        before: the statistics of ``base``.
    """
    changed = (edited != base).any(0) & active
    if not changed.any():
        return None
    box = _surrounding(changed)
    old = base[:, *box].astype(np.float64)
    new = np.where(changed[box], edited[:, *box], old)
    total = changed.size
    over = tuple(range(1, old.ndim))
    first = (new - old).sum(over) / total
    second = ((new - old) * (new + old - 2.0 * before.mean.reshape(-1, *[1] * len(over)))).sum(over) / total
    area = float(changed.mean())

    def per_position(value: NDArray[np.float64], scale: NDArray[np.float64]) -> float:
        return float(np.sqrt(np.mean((value / (scale + _TINY)) ** 2))) / area

    rougher = (_roughness(new) - _roughness(old)) / (before.roughness + _TINY)
    return Shift(
        area,
        mean=per_position(first, np.sqrt(before.variance)),
        variance=per_position(second - first**2, before.variance),
        energy=float(np.mean(((new - old) ** 2).sum(over) / total / (before.variance + _TINY))) / area,
        roughness=float(np.mean(rougher)) / area,
    )


def _surrounding(changed: NDArray[np.bool_]) -> tuple[slice, ...]:
    """The box around the changed positions and their neighbours: nothing outside it moves a statistic."""
    axes = range(changed.ndim)
    places = [np.flatnonzero(changed.any(tuple(other for other in axes if other != axis))) for axis in axes]
    return tuple(slice(max(0, int(place[0]) - 1), int(place[-1]) + 2) for place in places)


def _roughness(feed: NDArray[Any]) -> NDArray[np.float64]:
    """Per channel the sum of squared differences between neighbours."""
    steps = [np.diff(feed, axis=axis) for axis in range(1, feed.ndim)]
    squares = [np.square(step).reshape(len(feed), -1).sum(1, dtype=np.float64) for step in steps]
    return np.asarray(np.sum(squares, axis=0), np.float64)
