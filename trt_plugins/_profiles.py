"""Buckets of row counts as ranges of sizes.

A builder checks the arithmetic on shapes at the least, the usual and the largest size of every profile, so that all
three have to be sizes that belong together. They come from real regions: for a bucket, from several that have its
number of active rows and differ in how scattered they are.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from retouch.bundle import EditGraphSpec, Manifest, ProfileSpec
from retouch.region import Region, RegionPolicy
from retouch.trt_plugins._open_dims import Shape, sizes_of

__all__ = ["profiles"]

_EXACT = RegionPolicy(dilation=0)
_DENSE_BELOW = RegionPolicy(dilation=0, dense_rows=256)
"""Has coarse grids active as a whole, as the policy ``faithful`` does."""
_PARTS = (2, 4)
"""Into so many blocks along every axis a region is scattered."""

_HALO_ROOM = 2
_HALO_LEAST = 64

Mask = NDArray[np.bool_]


def profiles(
    manifest: Manifest, spec: EditGraphSpec, shapes: Mapping[str, Shape], counts: Sequence[int]
) -> tuple[ProfileSpec, ...]:
    """The profiles of an edit graph, one per row count; none if no dim is open.

    The profile of all rows admits every region.

    Args:
        manifest: the bundle's manifest.
        spec: the edit graph.
        shapes: the shapes of its inputs.
        counts: numbers of active rows of the editable grid.
    """
    if not any(isinstance(dim, str) for shape in shapes.values() for dim in shape):
        return ()
    editable = manifest.grid(manifest.editable.grid)

    def sizes(mask: Mask, policy: RegionPolicy = _EXACT) -> dict[str, int]:
        active = Region.from_mask(mask, policy).active(manifest.grids, editable)
        return sizes_of(active, manifest, spec, shapes)

    least = _extreme(min, [sizes(mask) for mask in _single(editable.dims)])
    least = {name: 0 if _is_halo(name) else size for name, size in least.items()}
    found = []
    for count in counts:
        block = _block(editable.dims, count)
        usual = sizes(block)
        seen = [usual, sizes(block, _DENSE_BELOW)]
        seen += [sizes(moved) for mask in (block, *_scattered(editable.dims, count)) for moved in _moved(mask)]
        bounds = _bounds(manifest, spec, sizes(np.ones(editable.dims, np.bool_)))
        largest = bounds if count == editable.rows else _with_halos(_extreme(max, seen), bounds)
        found.append(ProfileSpec(count, {name: (least[name], usual[name], largest[name]) for name in usual}))
    return tuple(found)


def _is_halo(name: str) -> bool:
    return name.startswith("H_")


def _extreme(choose: Callable[[Iterable[int]], int], found: Sequence[Mapping[str, int]]) -> dict[str, int]:
    return {name: choose(sizes[name] for sizes in found) for name in found[0]}


def _with_halos(sizes: Mapping[str, int], bounds: Mapping[str, int]) -> dict[str, int]:
    """Room for outlines that are longer than those of the samples; halos depend on nothing else."""
    return {
        name: min(bounds[name], _HALO_ROOM * size + _HALO_LEAST) if _is_halo(name) else size
        for name, size in sizes.items()
    }


def _moved(mask: Mask) -> Iterator[Mask]:
    """The mask, and the mask one position further along every axis, where coarser grids cut it otherwise."""
    yield mask
    yield np.roll(mask, 1, tuple(range(mask.ndim)))


def _bounds(manifest: Manifest, spec: EditGraphSpec, sizes: Mapping[str, int]) -> dict[str, int]:
    """What no region exceeds: all rows are active, and all rows of a grid are read without being active."""
    halos = {f"H_{item.id}": manifest.grid(item.source).rows for item in manifest.neighbourhoods}
    blocks = {f"B_{grid}": manifest.grid(grid).rows for grid in spec.blocks}
    return {name: max(size, halos.get(name, 0), blocks.get(name, 0)) for name, size in sizes.items()}


def _single(dims: Sequence[int]) -> Iterator[Mask]:
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
