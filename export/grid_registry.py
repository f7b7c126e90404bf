"""The grids of one model: resolution levels, and grids whose rows follow from those of others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from retouch.export.digits import Digit, joined_digits
from retouch.export.lattice import Grid, Joint, Picked, Rows, View

__all__ = ["GridRegistry", "digits_of", "root_of", "turns_of"]

Positions = tuple[tuple[int, ...], ...]


@dataclass
class GridRegistry:
    """The grids of one model, made on first use and numbered in that order.

    Attributes:
        origin: the editable input they descend from.
        recomputed: whether tokens beside the rows of joint sequences are computed anew by every edit.
        levels: resolution levels, by dims.
        derived: those that follow from others, by what they are made of; every one behind those.
    """

    origin: str
    recomputed: bool = True
    levels: dict[tuple[int, ...], Grid] = field(default_factory=dict)
    derived: dict[object, Grid] = field(default_factory=dict)

    def get(self, dims: tuple[int, ...]) -> Grid:
        """The resolution level of those dims."""
        if dims not in self.levels:
            self.levels[dims] = Grid("g" + "x".join(map(str, dims)), dims, self.origin)
        return self.levels[dims]

    def join(self, grid: Grid, before: int, after: int) -> Grid:
        """The joint grid of the rows of a grid, which may be joint already, and so many tokens around them."""
        if grid.joint is not None:
            before, after, grid = before + grid.joint.before, after + grid.joint.after, grid.joint.grid
        joint = Joint(grid, before, after, self.recomputed)
        dims = (before + grid.size + after,)
        return self._derived(joint, Grid(f"j{before}_{grid.id}_{after}", dims, self.origin, joint=joint))

    def arranged(self, root: Grid, turns: Positions, places: Mapping[int, Sequence[Digit]]) -> Rows:
        """Rows of all positions of a grid in some order: the grid's own, or those of a view of it.

        Equal orders give equal rows, whatever way led to them.

        Args:
            root: the grid, which is no view.
            turns: per axis of it, the position that stands at each place.
            places: per axis of the value, the digits that it counts.
        """
        digits = {axis: joined_digits(run) for axis, run in places.items()}
        straight = turns == _straight(root.dims)
        whole = tuple(Digit(axis, size) for axis, size in enumerate(root.dims))
        if straight and len(digits) == 1 and next(iter(digits.values())) == whole:
            return Rows(root, tuple(digits))
        order = sorted(digits, key=lambda axis: (digits[axis][0].axis, -digits[axis][0].stride))
        axes = tuple(order)
        if straight and [digits[axis] for axis in order] == [(digit,) for digit in whole]:
            return Rows(root, axes)
        view = View(root, turns, tuple(digits[axis] for axis in order))
        name = f"v{len(self.derived)}_{root.id}"
        return Rows(self._derived(view, Grid(name, view.dims, self.origin, view=view)), axes)

    def picked(self, grid: Grid, positions: Positions) -> Grid:
        """The grid whose rows read those positions along the axes of a grid; ``-1`` reads none."""
        if grid.picked is not None:
            first = grid.picked.positions
            composed = zip(first, positions, strict=True)
            positions = tuple(tuple(own[p] if p >= 0 else -1 for p in others) for own, others in composed)
            grid = grid.picked.grid
        if positions == _straight(grid.dims):
            return grid
        picked = Picked(grid, positions)
        dims = tuple(map(len, positions))
        return self._derived(picked, Grid(f"p{len(self.derived)}_{grid.id}", dims, self.origin, picked=picked))

    def blocks(self, grid: Grid, along: Sequence[int]) -> Grid:
        """The grid of the blocks that some axes of a grid tell apart."""
        dims = tuple(size if axis in along else 1 for axis, size in enumerate(grid.dims))
        made = Grid(f"b{len(self.derived)}_{grid.id}", dims, self.origin, blocks=grid)
        return self._derived((grid, dims), made)

    def all(self) -> tuple[Grid, ...]:
        """All grids, every one behind those that it follows from."""
        return (*self.levels.values(), *self.derived.values())

    def _derived(self, key: object, grid: Grid) -> Grid:
        return self.derived.setdefault(key, grid)


def root_of(grid: Grid) -> Grid:
    """The grid that a view shows, the grid itself if it is none."""
    return grid if grid.view is None else grid.view.grid


def turns_of(grid: Grid) -> Positions:
    """Per axis of the root, the position that stands at each place."""
    return _straight(grid.dims) if grid.view is None else grid.view.turns


def digits_of(rows: Rows) -> dict[int, tuple[Digit, ...]]:
    """What every axis of a value that carries rows counts of their root."""
    if rows.grid.view is not None:
        return dict(zip(rows.axes, rows.grid.view.digits, strict=True))
    whole = tuple(Digit(axis, size) for axis, size in enumerate(rows.grid.dims))
    return {rows.axes[0]: whole} if rows.flat else {axis: (d,) for axis, d in zip(rows.axes, whole, strict=True)}


def _straight(dims: Sequence[int]) -> Positions:
    return tuple(tuple(range(size)) for size in dims)
