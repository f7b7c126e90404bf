"""A region of an image on the grid of the model that makes it."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from retouch.bundle import GridSpec
from retouch.errors import RegionError
from retouch.region import Region, RegionPolicy


def region_on_grid(
    region: Region | NDArray[np.bool_], grid: GridSpec, scale: int | None, policy: str | RegionPolicy | None
) -> Region:
    """The positions of a grid in which the region selects at least one pixel.

    A grid of one axis is a sequence of the image's patches, row by row, as transformers over packed latents have it.

    Args:
        region: a region or boolean mask of the image, or of the grid itself.
        grid: the grid of the editable input.
        scale: pixels along each side of a position; ``None`` means what follows from the two sizes.
        policy: how far around the region to compute; ``None`` means the region's own, for a mask the default.

    Raises:
        RegionError: the image is no whole multiple of the grid.
    """
    given = region if isinstance(region, Region) else Region.from_mask(region)
    mask = _pooled(given.mask, grid, scale)
    if policy is not None:
        return Region.from_mask(mask, policy)
    return Region(mask, given.policy) if isinstance(region, Region) else Region.from_mask(mask)


def _pooled(mask: NDArray[np.bool_], grid: GridSpec, scale: int | None) -> NDArray[np.bool_]:
    if mask.shape == grid.dims and scale in (None, 1):
        return mask
    factor = _factor(mask.shape, grid) if scale is None else scale
    dims = grid.dims if len(grid.dims) == mask.ndim else tuple(size // max(factor, 1) for size in mask.shape)
    wanted = tuple(size * factor for size in dims)
    if factor < 1 or mask.shape != wanted or math.prod(dims) != grid.rows:
        raise _unfit(mask.shape, grid, scale)
    split = [part for size in dims for part in (size, factor)]
    pooled = np.any(mask.reshape(split), axis=tuple(range(1, 2 * len(dims), 2)))
    return np.asarray(pooled).reshape(grid.dims)


def _factor(shape: tuple[int, ...], grid: GridSpec) -> int:
    """The side of a position: the whole number that makes the grid's area the image's, or zero."""
    if len(shape) == len(grid.dims):
        return shape[0] // grid.dims[0]
    return math.isqrt(math.prod(shape) // grid.rows)


def _unfit(shape: tuple[int, ...], grid: GridSpec, scale: int | None) -> RegionError:
    times = "a whole multiple of" if scale is None else f"{scale} times"
    return RegionError(
        f"Expected a region of an image whose size is {times} the editable grid's {grid.dims}, got {shape}. "
        "Give the mask at the size of the final image, or of the grid itself, without batch and channel axes."
    )
