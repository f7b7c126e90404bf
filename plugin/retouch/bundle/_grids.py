"""The grids of a model as its manifest describes them: levels of resolution, and what is made of their rows."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class JointSpec:
    """A sequence in which the rows of a grid stand beside other tokens, as image tokens beside those of a text.

    Attributes:
        grid: id of the grid.
        before: number of other tokens in front of its rows.
        after: number of other tokens behind them.
        recomputed: whether every edit computes the other tokens anew; else they keep what the base run computed.
    """

    grid: str
    before: int
    after: int
    recomputed: bool


@dataclass(frozen=True)
class ViewSpec:
    """All rows of a grid in another order, as windows of attention, frames of a video or rolled positions have them.

    Every axis of the view counts digits. The digits of one axis of the grid, each times its stride, add up to a place
    along that axis; ``turns`` says which position stands there.

    Attributes:
        grid: id of the grid, which is no view itself.
        turns: per axis of the grid, the position that stands at each place; every position once.
        digits: per axis of the view, its digits, most significant first: axis of the grid, count, stride.
    """

    grid: str
    turns: tuple[tuple[int, ...], ...]
    digits: tuple[tuple[tuple[int, int, int], ...], ...]


@dataclass(frozen=True)
class PickedSpec:
    """Some rows of a grid, some perhaps more than once, as slices and pads have them.

    A row is active exactly if the one that it reads is.

    Attributes:
        grid: id of the grid.
        positions: per axis, the position along the grid's axis that each position reads; ``-1`` reads none.
    """

    grid: str
    positions: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class BlocksSpec:
    """Blocks of rows that attend to each other: positions along some axes of a grid, all of those along the others.

    A block is active exactly if a row in it is. The block's dims are the grid's, with one for the axes within a block.

    Attributes:
        grid: id of the grid.
    """

    grid: str


@dataclass(frozen=True)
class GridSpec:
    """A grid: its id, its dims, and the editable input it descends from.

    It is a resolution level, or its rows follow from those of another grid. Then one of ``joint``, ``view``, ``picked``
    and ``blocks`` says how, and the other grid stands before it in the manifest.
    """

    id: str
    dims: tuple[int, ...]
    origin: str
    joint: JointSpec | None = None
    view: ViewSpec | None = None
    picked: PickedSpec | None = None
    blocks: BlocksSpec | None = None

    @property
    def rows(self) -> int:
        """Number of rows (positions) of the grid."""
        return math.prod(self.dims)

    @property
    def parent(self) -> str | None:
        """Id of the grid from whose rows its own follow, ``None`` for a resolution level."""
        made = self.joint or self.view or self.picked or self.blocks
        return None if made is None else made.grid
