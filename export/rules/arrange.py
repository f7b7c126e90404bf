"""Rows in another order: reshapes that cut and join the axes of a grid, and indices that turn them.

Every order of the same rows is emitted in one order, that of their grid's active rows, so that nothing is computed:
only what tells the rows' positions (``rows.<view>``) differs.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import onnx_ir as ir

from retouch.bundle import NeighbourhoodSpec
from retouch.export.digits import Digit, cut_at
from retouch.export.grid_registry import digits_of, root_of, turns_of
from retouch.export.lattice import Grid, Rows
from retouch.export.layout import GRID, Layout
from retouch.export.model_shapes import dtype_of
from retouch.export.rules._neighbourhood import local_rows
from retouch.export.rules._rule import RETOUCH_DOMAIN

if TYPE_CHECKING:
    from retouch.export.emit import EditGraph
    from retouch.export.grid_registry import GridRegistry

__all__ = ["emit_taken", "read_rows", "rearranged", "taken"]

Group = tuple[tuple[int, ...], tuple[int, ...]]
Picks = Mapping[int, Sequence[int]]


def rearranged(rows: Rows, groups: Iterable[Group], target: Sequence[int], grids: GridRegistry) -> Rows | None:
    """The rows of a reshape that cuts or joins axes of the grid only, ``None`` if it does more.

    Args:
        rows: the rows of the operand.
        groups: axes of operand and result that hold the same elements.
        target: shape of the result.
        grids: where views of the grid are made.
    """
    if rows.grid.joint is not None:
        return None
    digits, places = digits_of(rows), dict[int, tuple[Digit, ...]]()
    for before, after in groups:
        if not set(before) & set(digits):
            continue
        if not set(before) <= set(digits):
            return None
        runs = cut_at([digit for axis in before for digit in digits[axis]], [target[axis] for axis in after])
        if runs is None:
            return None
        places.update(zip(after, runs, strict=True))
    return grids.arranged(root_of(rows.grid), turns_of(rows.grid), places)


def taken(rows: Rows, picks: Picks, grids: GridRegistry) -> Rows | str:
    """The rows at some positions along axes of a value, or why they cannot be named.

    Args:
        rows: the rows of the value.
        picks: per axis of the value, what each position of the result reads along it, ``-1`` if nothing; axes that
            carry no rows do not count.
        grids: where grids are made.
    """
    if rows.grid.joint is not None and set(picks) & set(rows.axes):
        return "it picks along a joint sequence"
    for axis in [axis for axis in rows.axes if axis in picks]:
        digits, root, turns = digits_of(rows), root_of(rows.grid), turns_of(rows.grid)
        along, *others = digits[axis]
        if others or along.count != root.dims[along.axis]:
            return "it picks along a part of an axis of the grid, or along several at once"
        if sorted(picks[axis]) == list(range(along.count)):
            turn = tuple(turns[along.axis][position] for position in picks[axis])
            rows = grids.arranged(root, (*turns[: along.axis], turn, *turns[along.axis + 1 :]), digits)
            continue
        if any(len(run) > 1 for run in digits.values()) or len(digits) != len(rows.grid.dims):
            return "it picks along an axis of a grid that is cut into runs"
        if _is_level_of_stride(picks[axis], along.count) and rows.grid in grids.levels.values():
            dims = (len(picks[axis]) if own == axis else size for own, size in zip(rows.axes, root.dims, strict=True))
            rows = Rows(grids.get(tuple(dims)), rows.axes)
            continue
        sizes = zip(rows.axes, rows.grid.dims, strict=True)
        positions = tuple(tuple(picks[axis]) if own == axis else tuple(range(size)) for own, size in sizes)
        rows = Rows(grids.picked(rows.grid, positions), rows.axes)
    return rows


def _is_level_of_stride(positions: Sequence[int], size: int) -> bool:
    """Whether positions are one of every so many along a whole axis: then they make a coarser resolution level."""
    step = size // len(positions)
    return step * len(positions) == size and list(positions) == list(range(positions[0] % step, size, step))


def emit_taken(
    source: ir.Value, output: ir.Value, picks: Picks, graph: EditGraph, pad: float = 0.0
) -> tuple[ir.Value, Layout]:
    """The rows that an output takes from a value, and their layout; those that read nothing are the pad."""
    before, after = graph.facts.rows(source), graph.facts.rows(output)
    assert before is not None and after is not None
    if root_of(before.grid) == root_of(after.grid):
        emitted = graph.rows(source)
        return emitted.value, emitted.layout
    wanted = dict(zip(before.axes, map(range, before.grid.dims), strict=True)) | dict(picks)
    return read_rows(source, [wanted[axis] for axis in after.axes], after.grid, graph, pad)


def read_rows(
    source: ir.Value, positions: Sequence[Sequence[int]], target: Grid, graph: EditGraph, pad: float = 0.0
) -> tuple[ir.Value, Layout]:
    """What the rows of a grid read of a value, one row each, and their layout.

    Args:
        source: the value.
        positions: per axis of both grids, the position that each position reads; ``-1`` reads the pad.
        target: the grid.
        graph: the edit graph.
        pad: what a row without a source holds.
    """
    rows = graph.facts.rows(source)
    assert rows is not None
    sources = tuple(tuple((position,) for position in axis) for axis in positions)
    number = zlib.crc32(repr(sources).encode())
    name = f"{rows.grid.id}_{target.id}_taken{number:08x}"
    spec = NeighbourhoodSpec(name, rows.grid.id, target.id, sources, None, (1,) * len(sources))
    layout = (GRID, *(axis for axis in graph.rows_layout(source) if axis != GRID))
    operands = [*local_rows(graph, source, layout, spec, pad), graph.neighbours(spec)]
    chosen = graph.op("GatherRows", operands, domain=RETOUCH_DOMAIN, dtype=dtype_of(source))
    return graph.op("Squeeze", [chosen, graph.ints([1])]), layout
