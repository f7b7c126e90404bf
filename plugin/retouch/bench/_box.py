"""Regions of a size in positions."""

from __future__ import annotations

from collections.abc import Sequence

from retouch.errors import RegionError
from retouch.region import Region, RegionPolicy


def box_region(dims: Sequence[int], size: Sequence[int], policy: str | RegionPolicy = "exact") -> Region:
    """A centred box of that size on a grid of those dims.

    Raises:
        RegionError: the box does not fit the grid.
    """
    fits = len(size) == len(dims) and all(0 < part <= dim for part, dim in zip(size, dims, strict=True))
    if not fits:
        raise RegionError(
            f"Expected a box with {len(dims)} sizes of at least 1 and at most {tuple(dims)}, got {tuple(size)}."
        )
    first = [(dim - part) // 2 for part, dim in zip(size, dims, strict=True)]
    return Region.from_boxes([(*first, *(start + part for start, part in zip(first, size, strict=True)))], dims, policy)
