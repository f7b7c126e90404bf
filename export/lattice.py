"""What is known of a value: the lattice of the analysis, and the grids it speaks of."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

__all__ = ["Beside", "Fact", "Full", "Grid", "GridRegistry", "Invariant", "Joint", "Refusal", "Rows", "Statistic"]


@dataclass(frozen=True)
class Grid:
    """A resolution level of one editable input. Grids are the same when origin and dims are, never by size alone."""

    id: str
    dims: tuple[int, ...]
    origin: str
    joint: Joint | None = None

    @property
    def size(self) -> int:
        """Number of rows."""
        return math.prod(self.dims)


@dataclass(frozen=True)
class Joint:
    """What a joint grid is a sequence of: the rows of a grid, and other tokens before and behind them.

    Attributes:
        grid: the grid, which is no joint one itself.
        before: number of tokens before its rows.
        after: number of tokens behind them.
        recomputed: whether edits compute the other tokens anew, all of them.
    """

    grid: Grid
    before: int
    after: int
    recomputed: bool


@dataclass
class GridRegistry:
    """The grids of one model, made on first use and numbered in that order.

    Attributes:
        origin: the editable input they descend from.
        recomputed: whether tokens beside the rows of joint sequences are computed anew by every edit.
        grids: those that are no joint ones, by dims.
        joints: the joint ones, by id.
    """

    origin: str
    recomputed: bool = True
    grids: dict[tuple[int, ...], Grid] = field(default_factory=dict)
    joints: dict[str, Grid] = field(default_factory=dict)

    def get(self, dims: tuple[int, ...]) -> Grid:
        """The grid of those dims that descends from the registry's origin."""
        if dims not in self.grids:
            self.grids[dims] = Grid("g" + "x".join(map(str, dims)), dims, self.origin)
        return self.grids[dims]

    def join(self, grid: Grid, before: int, after: int) -> Grid:
        """The joint grid of the rows of a grid, which may be joint already, and so many tokens around them."""
        if grid.joint is not None:
            before, after, grid = before + grid.joint.before, after + grid.joint.after, grid.joint.grid
        name = f"j{before}_{grid.id}_{after}"
        if name not in self.joints:
            joint = Joint(grid, before, after, self.recomputed)
            self.joints[name] = Grid(name, (before + grid.size + after,), self.origin, joint)
        return self.joints[name]

    def all(self) -> tuple[Grid, ...]:
        """All grids, joint ones last."""
        return (*self.grids.values(), *self.joints.values())


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


@dataclass(frozen=True)
class Beside:
    """Tokens beside the rows of a joint sequence, such as text: they depend on the editable input through attention.

    Attributes:
        frozen: whether edits leave them as the base run computed them; else every edit computes them whole.
    """

    frozen: bool


@dataclass(frozen=True)
class Statistic:
    """Reduced over all rows of a grid, or computed from such values: every edit computes it whole, from few numbers."""


Fact = Invariant | Rows | Full | Beside | Statistic


@dataclass(frozen=True)
class Refusal:
    """Why a node is not computed on rows."""

    node: str
    op: str
    reason: str
