"""A neighbourhood's per-axis lists as arrays, ready to be combined for any set of target rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from retouch.bundle import NeighbourhoodSpec
from retouch.errors import BundleError

Dims = tuple[int, ...]
Scalar = TypeVar("Scalar", np.int64, np.float32)


@dataclass(frozen=True, eq=False)
class AxisTables:
    """Per axis an array [target coordinate, entry]; a row's entries are the row-major product over the axes.

    Attributes:
        rows: what each entry adds to the source row number; ``pad_row`` where the entry lies outside.
        taps: what each entry adds to the tap number, or ``None`` without taps.
        weights: the factor of each entry's weight, or ``None`` without weights.
        pad_row: the number that stands for the pad row: the number of source rows.
        tap_count: sub-rows per source row.
    """

    rows: tuple[NDArray[np.int64], ...]
    taps: tuple[NDArray[np.int64], ...] | None
    weights: tuple[NDArray[np.float32], ...] | None
    pad_row: int
    tap_count: int

    def source_rows(self, coordinates: Sequence[NDArray[np.intp]]) -> NDArray[np.int64]:
        """The source rows [M, T] that target rows at those coordinates (one array per axis) read."""
        total = _combine(np.add, self.rows, coordinates)
        # One entry outside along any axis lifts the sum to at least pad_row, which is above every source row.
        return np.minimum(total, self.pad_row, out=total)

    def source_taps(self, coordinates: Sequence[NDArray[np.intp]]) -> NDArray[np.int64] | None:
        """The taps [M, T] that go with :meth:`source_rows`, whatever the pad row's."""
        return None if self.taps is None else _combine(np.add, self.taps, coordinates)

    def source_weights(self, coordinates: Sequence[NDArray[np.intp]]) -> NDArray[np.float32] | None:
        """The weights [M, T] that go with :meth:`source_rows`."""
        return None if self.weights is None else _combine(np.multiply, self.weights, coordinates)


@lru_cache(maxsize=512)
def axis_tables(spec: NeighbourhoodSpec, source_dims: Dims, target_dims: Dims) -> AxisTables:
    """The tables of a neighbourhood between grids of those dims; kept, so that only the first call costs time."""
    _check(spec, source_dims, target_dims)
    pad_row = math.prod(source_dims)
    sources = [np.array(axis, np.int64) for axis in spec.sources]
    rows = [np.where(axis < 0, pad_row, axis * step) for axis, step in zip(sources, _strides(source_dims), strict=True)]
    taps = weights = None
    if spec.taps is not None:
        strides = _strides(spec.tap_counts)
        taps = tuple(np.array(axis, np.int64) * step for axis, step in zip(spec.taps, strides, strict=True))
    if spec.weights is not None:
        weights = tuple(np.array(axis, np.float32) for axis in spec.weights)
    return AxisTables(tuple(rows), taps, weights, pad_row, math.prod(spec.tap_counts))


def _combine(
    combine: Callable[[NDArray[Scalar], NDArray[Scalar]], NDArray[Scalar]],
    axes: Sequence[NDArray[Scalar]],
    coordinates: Sequence[NDArray[np.intp]],
) -> NDArray[Scalar]:
    result = axes[0].take(coordinates[0], axis=0)
    for axis, coordinate in zip(axes[1:], coordinates[1:], strict=True):
        entries = axis.take(coordinate, axis=0)
        width = result.shape[1] * entries.shape[1]
        result = combine(result[:, :, None], entries[:, None, :]).reshape(coordinate.size, width)
    return result


def _strides(dims: Dims) -> list[int]:
    return [math.prod(dims[axis + 1 :]) for axis in range(len(dims))]


def _check(spec: NeighbourhoodSpec, source_dims: Dims, target_dims: Dims) -> None:
    """Raise a BundleError if the lists do not fit the grids: a wrong row number would read another row silently."""
    ndim = len(spec.sources)
    if not ndim == len(source_dims) == len(target_dims) == len(spec.tap_counts):
        expected = f"as many axes as its grids {source_dims} -> {target_dims}"
        raise _misfit(spec, expected, f"{ndim} axes and tap counts {spec.tap_counts}")
    _check_lists(spec, spec.sources, target_dims, [(-1, size) for size in source_dims], "source coordinates")
    if spec.taps is not None:
        _check_lists(spec, spec.taps, target_dims, [(0, count) for count in spec.tap_counts], "taps")
    if spec.weights is not None:
        _check_lists(spec, spec.weights, target_dims, [(-math.inf, math.inf)] * ndim, "weights")


def _check_lists(
    spec: NeighbourhoodSpec,
    axes: Sequence[Sequence[Sequence[float]]],
    target_dims: Dims,
    limits: Sequence[tuple[float, float]],
    what: str,
) -> None:
    widths = [len(axis[0]) if axis else 0 for axis in spec.sources]
    for axis, size, width, (low, high) in zip(axes, target_dims, widths, limits, strict=True):
        lengths = {len(entries) for entries in axis}
        if len(axis) != size or lengths != {width} or width == 0:
            expected = f"{size} lists of {max(width, 1)} {what}"
            raise _misfit(spec, expected, f"{len(axis)} lists of {sorted(lengths)}")
        outside = [entry for entries in axis for entry in entries if not low <= entry < high]
        if outside:
            raise _misfit(spec, f"{what} of at least {low} and less than {high}", f"{outside[0]}")


def _misfit(spec: NeighbourhoodSpec, expected: str, got: str) -> BundleError:
    return BundleError(
        f"Neighbourhood {spec.id!r} does not fit its grids: expected {expected}, got {got}; export the bundle again."
    )
