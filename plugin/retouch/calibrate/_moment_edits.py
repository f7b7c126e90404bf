"""Edits to calibrate GroupNorm modes with: regions and contents of many kinds, drawn from what a model is fed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retouch.bundle import Manifest
from retouch.region import Region

Array = NDArray[Any]
_LEAST_AREA, _LARGEST_AREA = 0.02, 0.35
_FARTHEST = 3.0
"""How many standard deviations contents may lie from the input's: what is beyond all calibrated edits is guessed."""


@dataclass(frozen=True)
class MomentExample:
    """What a model is fed, and what edits of that may paste.

    Attributes:
        feeds: feeds of a base run.
        pasted: other values of the editable input, for the same conditions.
    """

    feeds: Mapping[str, Array]
    pasted: Sequence[Array] = ()


def moment_edits(
    manifest: Manifest, example: MomentExample, generator: np.random.Generator
) -> Iterator[tuple[Region, Array]]:
    """Regions, and the editable input of an edit of each: every kind of content once, in a block anywhere."""
    editable = manifest.editable
    base = np.asarray(example.feeds[editable.input])
    dims = manifest.grid(editable.grid).dims
    for make in (_roll(editable.axes), *_KINDS, *(_paste(other) for other in example.pasted)):
        mask = _block(dims, generator)
        content = make(base, generator).astype(base.dtype)
        shape = [1] * base.ndim
        for axis, size in zip(editable.axes, dims, strict=True):
            shape[axis] = size
        order = np.argsort(editable.axes)
        yield Region.from_mask(mask), np.where(mask.transpose(order).reshape(shape), content, base)


def _block(dims: Sequence[int], generator: np.random.Generator) -> NDArray[np.bool_]:
    area = np.exp(generator.uniform(np.log(_LEAST_AREA), np.log(_LARGEST_AREA)))
    mask = np.zeros(tuple(dims), np.bool_)
    lengths = [max(1, round(size * area ** (1 / len(dims)))) for size in dims]
    starts = [int(generator.integers(0, size - length + 1)) for size, length in zip(dims, lengths, strict=True)]
    mask[tuple(slice(start, start + length) for start, length in zip(starts, lengths, strict=True))] = True
    return mask


_Make = Callable[[Array, np.random.Generator], Array]


def _roll(axes: Sequence[int]) -> _Make:
    """What lies elsewhere in the input."""

    def rolled(base: Array, generator: np.random.Generator) -> Array:
        steps = [int(generator.integers(base.shape[axis] // 8, base.shape[axis])) for axis in axes]
        return np.roll(base, steps, tuple(axes))

    return rolled


def _noised(base: Array, generator: np.random.Generator) -> Array:
    """Noise added, from little to more than there is."""
    return np.asarray(base + generator.uniform(0.3, _FARTHEST) * base.std() * generator.standard_normal(base.shape))


def _flat(base: Array, generator: np.random.Generator) -> Array:
    """One value everywhere."""
    return np.full_like(base, base.mean() + _FARTHEST * generator.uniform(-1, 1) * base.std())


def _scaled(base: Array, generator: np.random.Generator) -> Array:
    """Weaker or stronger contrast."""
    return np.asarray(base * generator.uniform(0.3, 2.0))


def _moved(base: Array, generator: np.random.Generator) -> Array:
    """Another level."""
    return np.asarray(base + generator.uniform(-1, 1) * base.std())


_KINDS: tuple[_Make, ...] = (_noised, _flat, _scaled, _moved)


def _paste(other: Array) -> _Make:
    return lambda _base, _generator: np.asarray(other)
