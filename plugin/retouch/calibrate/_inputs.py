"""Regions and feeds to measure with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retouch.bundle import Manifest, TensorSpec
from retouch.errors import RegionError
from retouch.region import Region, RegionPolicy

_SCALAR = 0.5
"""What a scalar condition (a time, a noise level) is set to: inside the range of every usual convention."""


def block_region(dims: Sequence[int], area: float, policy: str | RegionPolicy = "exact") -> Region:
    """A centred block, or span of tokens, that takes about that share of the positions.

    Raises:
        RegionError: the share is not above 0 and at most 1.
    """
    if not 0 < area <= 1:
        raise RegionError(f"Expected an area above 0 and at most 1, the share of the positions, got {area}.")
    mask = np.zeros(tuple(dims), np.bool_)
    side = area ** (1 / len(dims))
    mask[tuple(_centred(dim, max(1, round(dim * side))) for dim in dims)] = True
    return Region.from_mask(mask, policy)


def _centred(dim: int, length: int) -> slice:
    start = (dim - length) // 2
    return slice(start, start + length)


def sample_feeds(manifest: Manifest, seed: int = 0) -> dict[str, NDArray[Any]]:
    """Feeds that take a usual time: noise, middling scalars, and the first of every kind of number (token, class)."""
    generator = np.random.default_rng(seed)
    return {spec.name: _sample(spec, generator) for spec in manifest.inputs}


def _sample(spec: TensorSpec, generator: np.random.Generator) -> NDArray[Any]:
    dtype = np.dtype(spec.dtype)
    if dtype.kind != "f":
        return np.zeros(spec.shape, dtype)
    if len(spec.shape) <= 1:
        return np.full(spec.shape, _SCALAR, dtype)
    return generator.standard_normal(spec.shape).astype(dtype)
