"""Whether grids that follow from others do so as their manifest says: a wrong row number reads another row silently."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from retouch.bundle._grids import GridSpec


def grid_faults(grids: Sequence[GridSpec]) -> Iterator[str]:
    """What is wrong with the grids of a manifest, in words that follow the manifest's name."""
    known: dict[str, GridSpec] = {}
    for grid in grids:
        if grid.id in known:
            yield f"describes the grid {grid.id!r} twice"
        if not grid.dims or min(grid.dims) < 1:
            yield f"gives the grid {grid.id!r} the dims {list(grid.dims)}"
        elif sum(made is not None for made in (grid.joint, grid.view, grid.picked, grid.blocks)) > 1:
            yield f"says in more than one way what the grid {grid.id!r} is made of"
        elif grid.parent is not None and grid.parent not in known:
            yield f"makes the grid {grid.id!r} of the grid {grid.parent!r}, which it does not describe before"
        elif not _follows(grid, known):
            yield f"gives the grid {grid.id!r} dims or rows that do not follow from the grid {grid.parent!r}"
        known[grid.id] = grid


def _follows(grid: GridSpec, known: Mapping[str, GridSpec]) -> bool:
    """Whether the dims are those that what it is made of gives, and every row that is named exists."""
    if grid.parent is None:
        return True
    parent = known[grid.parent]
    if grid.joint is not None:
        return min(grid.joint.before, grid.joint.after) >= 0 and grid.dims == (
            grid.joint.before + parent.rows + grid.joint.after,
        )
    if grid.picked is not None:
        lists = grid.picked.positions
        return (
            len(lists) == len(parent.dims)
            and tuple(map(len, lists)) == grid.dims
            and all(-1 <= p < size for positions, size in zip(lists, parent.dims, strict=True) for p in positions)
        )
    if grid.blocks is not None:
        return len(grid.dims) == len(parent.dims) and all(
            own in (1, size) for own, size in zip(grid.dims, parent.dims, strict=True)
        )
    return _is_view(grid, parent)


def _is_view(grid: GridSpec, parent: GridSpec) -> bool:
    """Whether every row of the parent stands at exactly one place."""
    view = grid.view
    if view is None or parent.view is not None or len(view.turns) != len(parent.dims):
        return False
    if any(sorted(turn) != list(range(size)) for turn, size in zip(view.turns, parent.dims, strict=True)):
        return False
    if tuple(math.prod(count for _, count, _ in digits) for digits in view.digits) != grid.dims:
        return False
    found: dict[int, list[tuple[int, int]]] = {axis: [] for axis in range(len(parent.dims))}
    for axis, count, stride in (digit for digits in view.digits for digit in digits):
        if axis not in found or count < 1:
            return False
        found[axis].append((stride, count))
    return all(_counts_to(sorted(digits), parent.dims[axis]) for axis, digits in found.items())


def _counts_to(digits: Sequence[tuple[int, int]], size: int) -> bool:
    """Whether digits, least significant first, are a number system that reaches exactly every position of an axis."""
    reached = 1
    for stride, count in digits:
        if stride != reached:
            return False
        reached *= count
    return reached == size
