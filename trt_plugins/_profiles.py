"""Buckets of row counts as ranges of sizes.

A builder checks the arithmetic on shapes at the least, the usual and the largest size of every profile, so that all
three have to be sizes that belong together. They come from real regions: for a bucket, from several that have its
number of active rows and differ in how scattered they are. For a graph that computes several edits they come from
stacks of such regions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from retouch.bundle import EditGraphSpec, Manifest, ProfileSpec
from retouch.region import Region, RegionPolicy
from retouch.trt_plugins._open_dims import Shape, sizes_of
from retouch.trt_plugins._sample_regions import regions_of, single_positions, stacks_of

__all__ = ["profiles"]

_EXACT = RegionPolicy(dilation=0)
_DENSE_BELOW = RegionPolicy(dilation=0, dense_rows=256)
"""Has coarse grids active as a whole, as the policy ``faithful`` does."""
_HALO_ROOM = 2
_HALO_LEAST = 64

Mask = NDArray[np.bool_]


def profiles(
    manifest: Manifest,
    spec: EditGraphSpec,
    shapes: Mapping[str, Shape],
    counts: Sequence[int],
    *,
    stacked: bool = False,
) -> tuple[ProfileSpec, ...]:
    """The profiles of an edit graph, one per row count; none if no dim is open.

    The profile of all rows admits every region.

    Args:
        manifest: the bundle's manifest.
        spec: the edit graph.
        shapes: the shapes of its inputs.
        counts: numbers of active rows of the editable grid.
        stacked: whether the graph computes several edits, which have so many rows together.
    """
    if not any(isinstance(dim, str) for shape in shapes.values() for dim in shape):
        return ()
    editable = manifest.grid(manifest.editable.grid)

    def sizes(masks: Sequence[Mask], policy: RegionPolicy = _EXACT) -> dict[str, int]:
        edits = [Region.from_mask(mask, policy).active(manifest.grids, editable) for mask in masks]
        return sizes_of(edits, manifest, spec, shapes)

    least = _extreme(min, [sizes([mask]) for mask in single_positions(editable.dims)])
    least = {name: 0 if _is_halo(name) else size for name, size in least.items()}
    bounds = _bounds(manifest, spec, sizes([np.ones(editable.dims, np.bool_)]))
    found = []
    for count in counts:
        samples = list(stacks_of(editable.dims, count) if stacked else regions_of(editable.dims, count))
        seen = [sizes(samples[0]), sizes(samples[0], _DENSE_BELOW), *map(sizes, samples[1:])]
        largest = bounds if count == editable.rows and not stacked else _with_halos(_extreme(max, seen), bounds)
        found.append(ProfileSpec(count, {name: (least[name], seen[0][name], largest[name]) for name in seen[0]}))
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


def _bounds(manifest: Manifest, spec: EditGraphSpec, sizes: Mapping[str, int]) -> dict[str, int]:
    """What no region exceeds: all rows are active, and all rows of a grid are read without being active."""
    halos = {f"H_{item.id}": manifest.grid(item.source).rows for item in manifest.neighbourhoods}
    blocks = {f"B_{grid}": manifest.grid(grid).rows for grid in spec.blocks}
    return {name: max(size, halos.get(name, 0), blocks.get(name, 0)) for name, size in sizes.items()}
