"""The rows that an edit computes on every grid."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from retouch.bundle import GridSpec
from retouch.errors import RegionError
from retouch.region._derived import with_derived


@dataclass(frozen=True, eq=False)
class ActiveRows:
    """The active rows of every grid.

    Attributes:
        rows: per grid id, the active row numbers in the order in which edits compute them (read-only int64).
        dims: per grid id, the grid's dims.
    """

    rows: Mapping[str, NDArray[np.int64]]
    dims: Mapping[str, tuple[int, ...]]

    @classmethod
    def from_masks(cls, masks: Mapping[str, NDArray[np.bool_]], grids: Sequence[GridSpec] = ()) -> ActiveRows:
        """The rows where masks are true, and those of the grids that follow from them.

        Args:
            masks: one per grid id, shaped like the grid; at least for every resolution level among the grids.
            grids: all grids, or those that are wanted beside the masks', behind those that they follow from.
        """
        rows: dict[str, NDArray[np.int64]] = {}
        for grid, mask in masks.items():
            if mask.dtype != np.bool_ or mask.ndim == 0:
                raise RegionError(
                    f"Expected a boolean mask shaped like grid {grid!r}, got dtype {mask.dtype} and shape {mask.shape}."
                )
            rows[grid] = np.flatnonzero(mask).astype(np.int64, copy=False)
        rows = with_derived(rows, grids)
        for numbers in rows.values():
            numbers.setflags(write=False)
        dims = {grid: mask.shape for grid, mask in masks.items()} | {grid.id: grid.dims for grid in grids}
        return cls(MappingProxyType(rows), MappingProxyType(dims))

    @classmethod
    def full(cls, grids: Sequence[GridSpec]) -> ActiveRows:
        """All rows of the grids; of joint sequences, all that edits compute."""
        return cls.from_masks({grid.id: np.ones(grid.dims, np.bool_) for grid in grids if grid.parent is None}, grids)

    def mask(self, grid_id: str) -> NDArray[np.bool_]:
        """The active rows of a grid as a mask of the grid's dims."""
        self.require(grid_id)
        mask = np.zeros(self.dims[grid_id], np.bool_)
        mask.reshape(-1)[self.rows[grid_id]] = True
        return mask

    def counts(self) -> dict[str, int]:
        """The number of active rows per grid id."""
        return {grid: rows.size for grid, rows in self.rows.items()}

    @cached_property
    def fingerprint(self) -> str:
        """A digest of the active rows of all grids: equal rows on equal grids have equal fingerprints."""
        digest = hashlib.blake2b(digest_size=16)
        for grid in sorted(self.rows):
            digest.update(f"{grid!r}{self.dims[grid]}{self.rows[grid].size};".encode())
            digest.update(self.rows[grid].astype("<i8", copy=False).tobytes())
        return digest.hexdigest()

    def require(self, grid_id: str) -> None:
        """Raise a RegionError if the grid is not among those the rows were computed for."""
        if grid_id not in self.rows:
            raise RegionError(
                f"No active rows were computed for grid {grid_id!r}, only for {', '.join(map(repr, self.rows))}; "
                "pass every grid of the bundle to Region.active."
            )
