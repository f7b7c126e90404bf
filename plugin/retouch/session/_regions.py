"""What a region means for a bundle: active rows, their cost, and the index inputs of an edit graph."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from retouch.bundle import EditGraphSpec, GridSpec, Manifest, NeighbourhoodSpec
from retouch.engines import Engine, Value
from retouch.errors import RegionError
from retouch.region import (
    ActiveRows,
    Region,
    RegionPolicy,
    attention_mask,
    index_inputs,
    owner_inputs,
    stacked_index_inputs,
)
from retouch.session._lru import Lru

_KEPT_REGIONS = 16


@dataclass(frozen=True, eq=False)
class ActiveRegion:
    """A region on the grids of a bundle.

    Attributes:
        region: the region.
        active: its active rows.
        editable: its active rows among the editable positions, as a mask.
        flop_ratio: the share of a full run's FLOPs that an edit of it computes.
    """

    region: Region
    active: ActiveRows
    editable: NDArray[np.bool_]
    flop_ratio: float


class Regions:
    """The regions used last, and the index inputs they make: the same mask is edited again and again."""

    def __init__(self, engine: Engine, manifest: Manifest) -> None:
        self._engine = engine
        self._manifest = manifest
        self._regions: Lru[str, ActiveRegion] = Lru(_KEPT_REGIONS)
        self._inputs: Lru[tuple[str, str], Mapping[str, Value]] = Lru(_KEPT_REGIONS)
        self._insides: Lru[tuple[str, str], NDArray[np.bool_]] = Lru(_KEPT_REGIONS)

    def active(self, region: Region) -> ActiveRegion:
        """The region on the bundle's grids."""
        return self._regions.get(_digest(region), lambda: self._compute(region))

    def inside(self, region: Region, grid: str) -> NDArray[np.bool_]:
        """The region's own positions on a grid, without those that its policy adds."""
        return self._insides.get((_digest(region), grid), lambda: inside(self._manifest, region, grid))

    def inputs(self, region: ActiveRegion, key: str, spec: EditGraphSpec) -> Mapping[str, Value]:
        """The index inputs of an edit graph, which the manifest has under that key."""
        return self._inputs.get((region.active.fingerprint, key), lambda: self._index(region.active, spec))

    def stacked_inputs(self, regions: Sequence[ActiveRegion], spec: EditGraphSpec) -> Mapping[str, Value]:
        """The index, mask and owner inputs of a stacked graph for edits of those regions."""
        fingerprint = ".".join(region.active.fingerprint for region in regions)
        return self._inputs.get((fingerprint, spec.file), lambda: self._stack([r.active for r in regions], spec))

    def _stack(self, edits: Sequence[ActiveRows], spec: EditGraphSpec) -> dict[str, Value]:
        arrays = stacked_index_inputs(edits, *self._used(spec))
        for name in spec.masks:
            arrays[f"mask.{name}"] = attention_mask(edits, *name.split("."))
        arrays.update(owner_inputs(edits, self._described(spec.owners)))
        return {name: self._engine.value(array) for name, array in arrays.items()}

    def _compute(self, region: Region) -> ActiveRegion:
        manifest = self._manifest
        grid = manifest.grid(manifest.editable.grid)
        active = region.active(manifest.grids, grid)
        return ActiveRegion(region, active, active.mask(grid.id), manifest.flop_ratio(active.counts()))

    def _index(self, active: ActiveRows, spec: EditGraphSpec) -> dict[str, Value]:
        arrays = index_inputs(active, *self._used(spec))
        return {name: self._engine.value(array) for name, array in arrays.items()}

    def _used(self, spec: EditGraphSpec) -> tuple[list[NeighbourhoodSpec], list[GridSpec], list[GridSpec]]:
        neighbourhoods = [item for item in self._manifest.neighbourhoods if item.id in spec.neighbourhoods]
        return neighbourhoods, self._described(spec.grids), self._described(spec.blocks)

    def _described(self, ids: Sequence[str]) -> list[GridSpec]:
        return [grid for grid in self._manifest.grids if grid.id in ids]


def inside(manifest: Manifest, region: Region, grid: str) -> NDArray[np.bool_]:
    """The region's own positions on a grid, without those that its policy adds."""
    editable = manifest.grid(manifest.editable.grid)
    return Region.from_mask(region.mask, "exact").active(manifest.grids, editable).mask(grid)


def as_region(region: object, policy: str | RegionPolicy | None) -> Region:
    """The region, or the region of a mask; a policy that is given replaces the region's own."""
    if isinstance(region, Region):
        return region if policy is None else Region.from_mask(region.mask, policy)
    if not isinstance(region, np.ndarray):
        raise RegionError(f"Expected a Region or a boolean numpy array, got {type(region).__name__}.")
    return Region.from_mask(region) if policy is None else Region.from_mask(region, policy)


def _digest(region: Region) -> str:
    digest = hashlib.blake2b(f"{region.policy}{region.mask.shape}".encode(), digest_size=16)
    digest.update(np.packbits(region.mask).data)
    return digest.hexdigest()
