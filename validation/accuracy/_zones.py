"""Where an output is judged: inside the region, close to it, beyond, and where nothing may change."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from retouch.bundle import Manifest, OutputSpec
from retouch.region import Region, RegionPolicy
from retouch.validation.accuracy._cases import Case, Mask

INSIDE, NEAR, OUTSIDE = "inside", "near", "outside"
ZONES = (INSIDE, NEAR, OUTSIDE)

RING = 8
"""Positions of the editable input, around the region, that count as near."""


def zone_masks(manifest: Manifest, output: OutputSpec, case: Case) -> dict[str, Mask | None]:
    """The zones that are not empty, as masks of the output's positions.

    An output without positions is inside as a whole, which ``None`` stands for.
    """
    if output.grid is None:
        return {INSIDE: None}
    inside = _on_grid(manifest, output, Region.from_mask(case.judged, RegionPolicy(0)))
    ring = _on_grid(manifest, output, Region.from_mask(case.judged, RegionPolicy(RING)))
    masks = {INSIDE: inside, NEAR: ring & ~inside, OUTSIDE: ~ring}
    return {zone: mask for zone, mask in masks.items() if mask.any()}


def active_mask(manifest: Manifest, output: OutputSpec, case: Case) -> Mask | None:
    """The positions that the edit computes; ``None`` stands for an output without positions."""
    return None if output.grid is None else _on_grid(manifest, output, case.region)


def by_position(output: OutputSpec, array: NDArray[Any], dims: tuple[int, ...]) -> NDArray[Any]:
    """The output with its positions first, in the grid's dims."""
    front = np.moveaxis(array, output.axes, range(len(output.axes)))
    return front.reshape(*dims, *front.shape[len(output.axes) :])


def elements(output: OutputSpec, array: NDArray[Any], mask: Mask | None) -> NDArray[Any]:
    """The elements of an output at the positions of a mask, in one row."""
    if mask is None:
        return array.reshape(-1)
    return by_position(output, array, mask.shape)[mask].reshape(-1)


def _on_grid(manifest: Manifest, output: OutputSpec, region: Region) -> Mask:
    assert output.grid is not None
    return region.active(manifest.grids, manifest.grid(manifest.editable.grid)).mask(output.grid)
