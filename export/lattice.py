"""What is known of a value: the lattice of the analysis, and the grids it speaks of."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

__all__ = ["Fact", "Full", "Grid", "GridRegistry", "Invariant", "Refusal", "Rows"]


@dataclass(frozen=True)
class Grid:
    """A resolution level of one editable input. Grids are the same when origin and dims are, never by size alone."""

    id: str
    dims: tuple[int, ...]
    origin: str

    @property
    def size(self) -> int:
        """Number of rows."""
        return math.prod(self.dims)


@dataclass
class GridRegistry:
    """The grids of one model, made on first use and numbered in that order."""

    origin: str
    grids: dict[tuple[int, ...], Grid] = field(default_factory=dict)

    def get(self, dims: tuple[int, ...]) -> Grid:
        """The grid of those dims that descends from the registry's origin."""
        if dims not in self.grids:
            self.grids[dims] = Grid("g" + "x".join(map(str, dims)), dims, self.origin)
        return self.grids[dims]


@dataclass(frozen=True)
class Invariant:
    """Independent of the editable input."""


@dataclass(frozen=True)
class Rows:
    """Carries one entry per row of a grid.

    Attributes:
        grid: the grid.
        axes: the axes of the value that carry it: one per grid dim, in the grid's order, or a single
            axis that holds all rows flattened row-major.
    """

    grid: Grid
    axes: tuple[int, ...]

    @property
    def flat(self) -> bool:
        """Whether one axis holds all rows of a grid."""
        return len(self.axes) == 1

    def moved(self, offset: int) -> Rows:
        """The same rows with every axis moved by an offset."""
        return Rows(self.grid, tuple(axis + offset for axis in self.axes))


@dataclass(frozen=True)
class Full:
    """Depends on the editable input in a way that is not known to be per row: computed whole."""


Fact = Invariant | Rows | Full


@dataclass(frozen=True)
class Refusal:
    """Why a node is not computed on rows."""

    node: str
    op: str
    reason: str
