"""Input-grid masks from boxes, spans and row numbers."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from retouch.errors import RegionError

Item = TypeVar("Item")


def checked_mask(mask: ArrayLike) -> NDArray[np.bool_]:
    """A read-only copy of a mask that selects at least one position."""
    array = _array(mask, "mask of truth values, all rows of one length")
    if array.dtype != np.bool_:
        advice = (
            f"threshold it first, for example `mask > {_threshold(array.dtype)}`."
            if array.dtype.kind in "iuf"
            else "give a boolean array of the editable grid's dims."
        )
        raise RegionError(f"Expected a mask of dtype bool, got {array.dtype}; {advice}")
    if array.ndim == 0:
        raise RegionError("Expected a mask with one axis per axis of the editable grid, got a single value.")
    if not array.any():
        raise RegionError(
            f"There is nothing to edit: the mask of shape {array.shape} selects no position; "
            "set at least one position to True."
        )
    array.setflags(write=False)
    return array


def mask_from_boxes(boxes: Iterable[Sequence[int]], shape: Sequence[int]) -> NDArray[np.bool_]:
    """The union of boxes ``(first..., stop...)``, all firsts before all stops, as in ``(y0, x0, y1, x1)``."""
    dims = checked_shape(shape)
    mask = np.zeros(dims, np.bool_)
    for box in _items(boxes, "list of boxes, like [(y0, x0, y1, x1)]"):
        corners = [_integer(value, f"box {box!r}") for value in _items(box, "box in a list, like [(y0, x0, y1, x1)]")]
        if len(corners) != 2 * len(dims):
            raise RegionError(
                f"Expected {2 * len(dims)} numbers per box on a grid of shape {dims} (the first corner, then the "
                f"corner after the last one), got the box {box!r}."
            )
        pairs = list(zip(corners[: len(dims)], corners[len(dims) :], strict=True))
        for (start, stop), size in zip(pairs, dims, strict=True):
            _check_range(start, stop, size, f"box {box!r} on a grid of shape {dims}")
        mask[tuple(slice(start, stop) for start, stop in pairs)] = True
    return mask


def mask_from_spans(spans: Iterable[Sequence[int]], length: int) -> NDArray[np.bool_]:
    """The union of spans ``(start, stop)`` of a one-dimensional grid; ``stop`` is not part of a span."""
    dims = checked_shape((length,))
    mask = np.zeros(dims, np.bool_)
    for span in _items(spans, "list of spans, like [(start, stop)]"):
        ends = [_integer(value, f"span {span!r}") for value in _items(span, "span in a list, like [(start, stop)]")]
        if len(ends) != 2:
            raise RegionError(f"Expected a span (start, stop), got {span!r}.")
        _check_range(ends[0], ends[1], dims[0], f"span {span!r} on a grid of length {dims[0]}")
        mask[ends[0] : ends[1]] = True
    return mask


def mask_from_rows(rows: ArrayLike, shape: Sequence[int]) -> NDArray[np.bool_]:
    """The positions with those row numbers (row-major)."""
    dims = checked_shape(shape)
    numbers = _array(rows, "list of row numbers")
    if numbers.size == 0:
        return np.zeros(dims, np.bool_)
    if numbers.ndim != 1 or not np.issubdtype(numbers.dtype, np.integer):
        raise RegionError(
            f"Expected a one-dimensional list of integer row numbers, got dtype {numbers.dtype} and shape "
            f"{numbers.shape}; use Region.from_mask for a mask and np.ravel_multi_index for coordinates."
        )
    _check_rows(numbers, dims)
    mask = np.zeros(math.prod(dims), np.bool_)
    mask[numbers] = True
    return mask.reshape(dims)


def checked_shape(shape: Sequence[int]) -> tuple[int, ...]:
    """A grid's shape as a tuple of positive integers."""
    sizes = _items(shape, "grid shape as a tuple, like (64, 64)")
    dims = tuple(_integer(size, f"shape {shape!r}") for size in sizes)
    if not dims or min(dims) < 1:
        raise RegionError(f"Expected a grid shape of positive sizes, got {dims}.")
    return dims


def _check_rows(numbers: NDArray[np.integer], dims: tuple[int, ...]) -> None:
    total = math.prod(dims)
    outside = numbers[(numbers < 0) | (numbers >= total)]
    if outside.size:
        raise RegionError(
            f"Row number {outside[0]} is out of range: a grid of shape {dims} has the rows 0 to {total - 1}."
        )
    unique, counts = np.unique(numbers, return_counts=True)
    if unique.size != numbers.size:
        raise RegionError(
            f"Row number {unique[counts > 1][0]} is given more than once; give every row once, "
            "for example with np.unique."
        )


def _check_range(start: int, stop: int, size: int, what: str) -> None:
    if start >= stop:
        raise RegionError(f"The {what} is empty: {start} to {stop}; the stop must be greater than the start.")
    if start < 0 or stop > size:
        raise RegionError(f"The {what} is out of range: {start} to {stop} does not lie in 0 to {size}.")


def _integer(value: object, what: str) -> int:
    try:
        return operator.index(value)  # type: ignore[arg-type]
    except TypeError as error:
        raise RegionError(f"Expected integers in the {what}, got {value!r}.") from error


def _items(value: Iterable[Item], what: str) -> Iterable[Item]:
    if not isinstance(value, Iterable):
        raise RegionError(f"Expected a {what}, got {value!r}.")
    return value


def _array(value: ArrayLike, what: str) -> NDArray[Any]:
    try:
        return np.array(value)
    except (RuntimeError, TypeError, ValueError) as error:  # rows of different lengths
        raise RegionError(f"Expected a {what}, got: {error}. Give a numpy array.") from error


def _threshold(dtype: np.dtype[np.generic]) -> str:
    if dtype == np.uint8:
        return "127"
    return "0.5" if np.issubdtype(dtype, np.floating) else "0"


def mask_from_difference(before: ArrayLike, after: ArrayLike, threshold: float) -> NDArray[np.bool_]:
    """The positions at which two images, [height, width] or [height, width, channels], differ by more than that."""
    one, other = np.asarray(before), np.asarray(after)
    if one.shape != other.shape or one.ndim not in (2, 3):
        raise RegionError(
            "Expected two images of one shape, [height, width] or [height, width, channels], got "
            f"{one.shape} and {other.shape}."
        )
    difference = np.abs(one.astype(np.float64) - other.astype(np.float64))
    mask: NDArray[np.bool_] = (difference if one.ndim == 2 else difference.max(axis=-1)) > threshold
    if not mask.any():
        raise RegionError(
            f"Expected images that differ by more than {threshold} somewhere, but they differ by at most "
            f"{difference.max()}. Give a lower threshold, or another image."
        )
    return mask
