"""Regions, and stacks of regions, of a number of positions: what profiles take their sizes from."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["regions_of", "single_positions", "stacks_of"]

Mask = NDArray[np.bool_]

_PARTS = (2, 4)
"""Into so many blocks along every axis a region is scattered."""
_EDITS = (4, 2, 8)
"""So many edits make a stack, as many as usual first."""


def regions_of(dims: Sequence[int], count: int) -> Iterator[list[Mask]]:
    """Regions of so many positions, each by itself: a compact block first, then others, also one position further."""
    block = _block(dims, count)
    for mask in (block, *_scattered(dims, count)):
        for moved in _moved(mask):
            yield [moved]


def stacks_of(dims: Sequence[int], count: int) -> Iterator[list[Mask]]:
    """Regions of several edits that have so many positions together, in different places; compact blocks first."""
    for edits in _EDITS:
        each = max(1, count // edits)
        for mask in (_block(dims, each), *_scattered(dims, each)):
            yield [_rolled(mask, [number * size // edits + number for size in dims]) for number in range(edits)]


def _moved(mask: Mask) -> Iterator[Mask]:
    """The mask, and the mask one position further along every axis, where coarser grids cut it otherwise."""
    yield mask
    yield _rolled(mask, [1] * mask.ndim)


def single_positions(dims: Sequence[int]) -> Iterator[Mask]:
    """Single positions: at corners, edges and in the middle, on even and on odd places."""
    places = [sorted({0, size // 2, min(size // 2 + 1, size - 1), size - 1}) for size in dims]
    for position in itertools.product(*places):
        mask = np.zeros(tuple(dims), np.bool_)
        mask[position] = True
        yield mask


def _block(dims: Sequence[int], count: int) -> Mask:
    """A compact block in the middle of about so many positions, and never more."""
    side = (count / math.prod(dims)) ** (1 / len(dims))
    lengths = [min(size, max(1, round(size * side))) for size in dims]
    while math.prod(lengths) > count:
        lengths[lengths.index(max(lengths))] -= 1
    mask = np.zeros(tuple(dims), np.bool_)
    starts = [(size - length) // 2 for size, length in zip(dims, lengths, strict=True)]
    mask[tuple(slice(start, start + length) for start, length in zip(starts, lengths, strict=True))] = True
    return mask


def _scattered(dims: Sequence[int], count: int) -> Iterator[Mask]:
    """Strips along every axis, and blocks spread over the grid."""
    for axis in range(len(dims)):
        order = np.moveaxis(np.arange(math.prod(dims)).reshape(dims), axis, 0).reshape(-1)
        mask = np.zeros(math.prod(dims), np.bool_)
        mask[order[:count]] = True
        yield mask.reshape(dims)
    for parts in _PARTS:
        cells = parts ** len(dims)
        if count >= cells and all(size % parts == 0 for size in dims):
            part = [size // parts for size in dims]
            if count // cells <= math.prod(part):
                yield np.tile(_block(part, count // cells), (parts,) * len(dims))


def _rolled(mask: Mask, by: Sequence[int]) -> Mask:
    return np.roll(mask, tuple(by), tuple(range(mask.ndim)))
