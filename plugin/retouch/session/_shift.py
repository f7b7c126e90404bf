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
    base: NDArray[Any], edited: NDArray[Any], changed: NDArray[np.bool_], before: Statistics
) -> Shift | None:
    """The shift from one input [C, *dims] to another, ``None`` if no position changes.

    Args:
        base: the base run's input.
        edited: the edit's.
        changed: the positions [*dims] that change; others count as unchanged, whatever the edit has there.
        before: the statistics of ``base``.
    """
    area = np.count_nonzero(changed) / changed.size
    if area == 0.0:
        return None
    box = _surrounding(changed)
    old = base[:, *box].astype(np.float64)
    new = np.where(changed[box], edited[:, *box], old)
    # Few calls on few elements: after a full run the code of every one of them has to be read from memory again.
    change, both = (new - old).reshape(len(old), -1), (new + old).reshape(len(old), -1)
    first = change.sum(1) / changed.size
    second = _products(change, both) / changed.size - 2.0 * before.mean * first
    energy = _products(change, change) / changed.size
    scale = before.variance + _TINY
    moved = np.stack([first / (np.sqrt(before.variance) + _TINY), (second - first**2) / scale])
    mean, variance = np.sqrt(_products(moved, moved) / len(old)) / area
    rougher = (_roughness(new) - _roughness(old)) / (before.roughness + _TINY)
    return Shift(
        area,
        mean=float(mean),
        variance=float(variance),
        energy=float((energy / scale).sum()) / len(old) / area,
        roughness=float(rougher.sum()) / len(old) / area,
    )


def _products(one: NDArray[np.float64], other: NDArray[np.float64]) -> NDArray[np.float64]:
    """The sums of the products of rows [R, N]: [R]."""
    return np.asarray(np.einsum("rn,rn->r", one, other))


def _surrounding(changed: NDArray[np.bool_]) -> tuple[slice, ...]:
    """The box around the changed positions and their neighbours: nothing outside it moves a statistic."""
    axes = range(changed.ndim)
    places = [np.flatnonzero(changed.any(tuple(other for other in axes if other != axis))) for axis in axes]
    return tuple(slice(max(0, int(place[0]) - 1), int(place[-1]) + 2) for place in places)


def _roughness(feed: NDArray[Any]) -> NDArray[np.float64]:
    """Per channel the sum of squared differences between neighbours."""
    total = np.zeros(len(feed))
    for axis in range(1, feed.ndim):
        ahead, behind = [slice(None)] * feed.ndim, [slice(None)] * feed.ndim
        ahead[axis], behind[axis] = slice(1, None), slice(None, -1)
        steps = np.subtract(feed[tuple(ahead)], feed[tuple(behind)], dtype=np.float64).reshape(len(feed), -1)
        total += _products(steps, steps)
    return total
