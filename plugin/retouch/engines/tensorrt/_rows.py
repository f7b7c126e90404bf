"""Rows of tensors in the card's memory, copied from one tensor to another."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from retouch.engines.tensorrt._memory import Buffer, DeviceMemory
from retouch.engines.tensorrt._tensor import DeviceTensor

__all__ = ["merged", "taken"]

Rows = NDArray[np.int64]

_MOST_COPIES = 1024
"""Rows that are scattered over more places go by way of the host: every copy has to be started."""


def merged(memory: DeviceMemory, base: DeviceTensor, update: DeviceTensor, rows: Rows, axis: int) -> DeviceTensor:
    """``base`` with the rows along an axis replaced by those of ``update``, in fresh memory."""
    outers = math.prod(base.shape[:axis])
    if outers * len(list(_runs(rows))) > _MOST_COPIES:
        whole = base.numpy().copy()
        np.moveaxis(whole, axis, 0)[rows] = np.moveaxis(update.numpy(), axis, 0)
        return DeviceTensor.from_numpy(memory, whole)
    stream = memory.stream
    result = DeviceTensor.copy_of(memory, base, stream)
    source, target = update.buffer(stream), result.buffer(stream)
    every, size = base.shape[axis], _row_size(base, axis)
    for outer in range(outers):
        for start, place, count in _runs(rows):
            _copy(memory, target, outer * every + place, source, outer * len(rows) + start, count, size)
    memory.cuda.synchronise(stream)
    return result


def taken(memory: DeviceMemory, value: DeviceTensor, rows: Rows, axis: int) -> DeviceTensor:
    """Some rows of a value along an axis, in fresh memory."""
    outers = math.prod(value.shape[:axis])
    if outers * len(list(_runs(rows))) > _MOST_COPIES:
        return DeviceTensor.from_numpy(memory, value.numpy().take(rows, axis))
    stream = memory.stream
    shape = (*value.shape[:axis], len(rows), *value.shape[axis + 1 :])
    source, size = value.buffer(stream), _row_size(value, axis)
    target = memory.allocate(math.prod(shape) * value.numpy_dtype.itemsize, stream)
    for outer in range(outers):
        for start, place, count in _runs(rows):
            _copy(memory, target, outer * len(rows) + start, source, outer * value.shape[axis] + place, count, size)
    memory.cuda.synchronise(stream)
    return DeviceTensor(memory, shape, value.numpy_dtype, buffer=target)


def _runs(rows: Rows) -> Iterator[tuple[int, int, int]]:
    """Consecutive rows that lie one behind another: the first one's number, its place, and how many they are."""
    starts = np.flatnonzero(np.diff(rows, prepend=rows[:1] - 2) != 1)
    for start, end in zip(starts, [*starts[1:], len(rows)][: len(starts)], strict=True):
        yield int(start), int(rows[start]), int(end - start)


def _row_size(value: DeviceTensor, axis: int) -> int:
    return math.prod(value.shape[axis + 1 :]) * value.numpy_dtype.itemsize


def _copy(memory: DeviceMemory, target: Buffer, to: int, source: Buffer, place: int, count: int, size: int) -> None:
    memory.cuda.copy(target.address + to * size, source.address + place * size, count * size, memory.stream)
