"""What is known of a value: the lattice of the analysis, and the grids it speaks of."""

from __future__ import annotations

import math
from dataclasses import dataclass

from retouch.export.digits import Digit

__all__ = ["Beside", "Fact", "Full", "Grid", "Invariant", "Joint", "Picked", "Refusal", "Rows", "Statistic", "View"]


@dataclass(frozen=True)
class Grid:
    """A resolution level of one editable input, or a grid whose rows follow from those of another.

    Levels are the same when origin and dims are; other grids when they are made of the same in the same way. Size
    alone never makes grids the same.
    """

    id: str
    dims: tuple[int, ...]
    origin: str
    joint: Joint | None = None
    view: View | None = None
    picked: Picked | None = None
    blocks: Grid | None = None

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


@dataclass(frozen=True)
class View:
    """All rows of a grid in another order: turned along its axes, cut into digits, the digits put on other axes.

    Attributes:
        grid: the grid, which is no view itself.
        turns: per axis of it, the position that stands at each place.
        digits: per axis of the view, the digits of places that it counts, most significant first.
    """

    grid: Grid
    turns: tuple[tuple[int, ...], ...]
    digits: tuple[tuple[Digit, ...], ...]

    @property
    def dims(self) -> tuple[int, ...]:
        """The dims of the view."""
        return tuple(math.prod(digit.count for digit in run) for run in self.digits)


@dataclass(frozen=True)
class Picked:
    """Some rows of a grid, as slices and pads have them.

    Attributes:
        grid: the grid, which is no picked one itself.
        positions: per axis, the position along the grid's axis that each position reads; ``-1`` reads none.
    """

    grid: Grid
    positions: tuple[tuple[int, ...], ...]

    @property
    def spans(self) -> bool:
        """Whether every row of the grid is among them, so that they are of the same extent."""
        sizes = zip(self.positions, self.grid.dims, strict=True)
        return all(set(range(size)) <= set(positions) for positions, size in sizes)


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
