"""Per-axis source lists and weights of Resize with wider filters: cubic, and those that are stretched to blur."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from retouch.errors import ExportError
from retouch.region._resize import AxisWeights, source_positions
from retouch.region._windows import AxisIndices

CUBIC_COEFFICIENT = -0.75
"""The operator's default for ``cubic_coeff_a``."""


@dataclass(frozen=True)
class ResizeFilter:
    """A filter of Resize.

    Attributes:
        mode: ``linear`` or ``cubic``.
        antialias: whether the filter is stretched where the axis shrinks.
        exclude_outside: whether positions beyond an edge have no weight; else they read the edge.
        coefficient: the operator's ``cubic_coeff_a``.
    """

    mode: str
    antialias: bool = False
    exclude_outside: bool = False
    coefficient: float = CUBIC_COEFFICIENT

    def __post_init__(self) -> None:
        if self.mode not in _SUPPORTS:
            raise ExportError(
                f"Expected the mode of a filtering Resize to be one of {', '.join(_SUPPORTS)}, got {self.mode!r}."
            )

    @property
    def support(self) -> float:
        """How far from its centre the filter has weight."""
        return _SUPPORTS[self.mode]

    def __call__(self, distance: NDArray[np.float64]) -> NDArray[np.float64]:
        """The weight of positions at some distances from the centre."""
        far = np.abs(distance)
        if self.mode == "linear":
            triangle: NDArray[np.float64] = np.maximum(1 - far, 0)
            return triangle
        a = self.coefficient
        near = ((a + 2) * far - (a + 3)) * far * far + 1
        cubic: NDArray[np.float64] = np.where(
            far <= 1, near, np.where(far < 2, ((far - 5) * far + 8) * far * a - 4 * a, 0)
        )
        return cubic


def filtered_axis(
    size_in: int,
    size_out: int,
    scale: float,
    filtering: ResizeFilter,
    coordinate_transformation_mode: str = "half_pixel",
) -> tuple[AxisIndices, AxisWeights]:
    """The source coordinates that each target coordinate of a filtering Resize reads, and their weights.

    A coordinate without weight repeats one that has some, so that no row is read for nothing.

    Args:
        size_in: source size of the axis.
        size_out: target size of the axis.
        scale: the operator's scale for the axis, ``size_out / size_in`` if it was given sizes.
        filtering: the filter.
        coordinate_transformation_mode: the operator's attribute.
    """
    positions = source_positions(size_in, size_out, scale, coordinate_transformation_mode).astype(np.float64)
    stretch = max(1.0, 1.0 / scale) if filtering.antialias else 1.0
    reads = [_reads(float(position), stretch, size_in, filtering) for position in positions]
    width = max(map(len, reads))
    sources, weights = [], []
    for read in reads:
        filled = list(read.items()) + [(next(iter(read)), 0.0)] * (width - len(read))
        sources.append(tuple(source for source, _ in filled))
        weights.append(tuple(weight for _, weight in filled))
    return tuple(sources), tuple(weights)


def _reads(position: float, stretch: float, size: int, filtering: ResizeFilter) -> dict[int, float]:
    """The weight of every source coordinate that a position reads."""
    reach = filtering.support * stretch
    taps = np.arange(math.ceil(position - reach), math.floor(position + reach) + 1)
    weights = filtering(np.asarray((taps - position) / stretch, np.float64))
    inside = (taps >= 0) & (taps < size)
    if filtering.exclude_outside and inside.any():
        taps, weights = taps[inside], weights[inside]
    if filtering.antialias or filtering.exclude_outside:
        weights = weights / weights.sum()
    found: dict[int, float] = {}
    for tap, weight in zip(np.clip(taps, 0, size - 1).tolist(), weights.tolist(), strict=True):
        if weight:
            found[tap] = found.get(tap, 0.0) + weight
    return found


_SUPPORTS: Mapping[str, float] = MappingProxyType({"linear": 1.0, "cubic": 2.0})
