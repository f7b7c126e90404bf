"""Reshapes that change the grid: every row becomes several finer ones, or several rows become one.

[B, C, h, f, w, g]  ->  [B, C, h f, w g]     patches laid out as pixels, pixels repeated by Expand
[B, C, h f, w g]    ->  [B, C, h, f, w, g]   pixels cut into patches or into windows of attention
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import onnx_ir as ir

from retouch.export.layout import GRID, Layout
from retouch.export.model_shapes import dtype_of, shape_of
from retouch.export.rules._neighbourhood import grouping_neighbourhood, local_rows, splitting_neighbourhood
from retouch.export.rules._rule import RETOUCH_DOMAIN

if TYPE_CHECKING:
    from retouch.export.emit import EditGraph
    from retouch.export.lattice import Rows

__all__ = ["Regrid", "emit_regrid", "regrid_of"]

Group = tuple[tuple[int, ...], tuple[int, ...]]


@dataclass(frozen=True)
class Regrid:
    """What a reshape does to a grid.

    Attributes:
        splits: whether rows become finer.
        axes: axes of the result that carry the new grid.
        factors: finer rows per coarser row, along every grid axis.
        inner: the axis, of the operand if rows become finer, else of the result, that counts the finer rows within a
            coarser one; ``None`` along grid axes that stay as they are.
        others: the other axes of the operand, each with its axis of the result.
    """

    splits: bool
    axes: tuple[int, ...]
    factors: tuple[int, ...]
    inner: tuple[int | None, ...]
    others: dict[int, int]

    @property
    def inner_axes(self) -> tuple[int, ...]:
        """The axes within a coarser row that there are."""
        return tuple(axis for axis in self.inner if axis is not None)


def regrid_of(rows: Rows, groups: Iterable[Group], source: tuple[int, ...], target: tuple[int, ...]) -> Regrid | None:
    """The change of grid that a reshape makes, ``None`` if it is none.

    Args:
        rows: the rows of the operand.
        groups: axes of operand and result that hold the same elements.
        source: shape of the operand.
        target: shape of the result.
    """
    places: dict[int, tuple[int, int, int | None, bool | None]] = {}
    others: dict[int, int] = {}
    for before, after in groups:
        carried = [axis for axis in before if axis in rows.axes]
        if len(before) == len(after) == 1 and not carried:
            others[before[0]] = after[0]
        elif len(before) == len(after) == 1:
            places[before[0]] = (after[0], 1, None, None)
        elif len(before) == 2 and len(after) == 1 and carried == [before[0]]:
            places[before[0]] = (after[0], source[before[1]], before[1], True)
        elif len(before) == 1 and len(after) == 2 and carried:
            places[before[0]] = (after[0], target[after[1]], after[1], False)
        else:
            return None
    found = [places.get(axis) for axis in rows.axes]
    kinds = {place[3] for place in found if place is not None} - {None}
    if (rows.flat and len(rows.grid.dims) > 1) or len(kinds) != 1 or None in found:
        return None
    axes, factors, inner, _ = zip(*(place for place in found if place is not None), strict=True)
    return Regrid(kinds == {True}, axes, factors, inner, others)


def emit_regrid(node: ir.Node, regrid: Regrid, graph: EditGraph) -> None:
    """Gathers the coarser row of every row, or the finer rows of every row."""
    source = node.inputs[0]
    assert source is not None
    rest = tuple(axis for axis in graph.rows_layout(source) if axis in regrid.others)
    tensor, inner = _split(node, rest, regrid, graph) if regrid.splits else _grouped(node, rest, regrid, graph)
    graph.set_rows(node.outputs[0], tensor, (GRID, *inner, *(regrid.others[axis] for axis in rest)))


def _split(node: ir.Node, rest: Layout, regrid: Regrid, graph: EditGraph) -> tuple[ir.Value, Layout]:
    source = node.inputs[0]
    assert source is not None
    before, after = graph.facts.rows(source), graph.facts.rows(node.outputs[0])
    assert before is not None and after is not None
    spec = splitting_neighbourhood(regrid.factors, before.grid, after.grid)
    rows, cached, halo, pad = local_rows(graph, source, (GRID, *regrid.inner_axes, *rest), spec, 0.0)
    local = graph.op("Concat", [rows, graph.op("Gather", [cached, halo], {"axis": 0}), pad], {"axis": 0})
    local = graph.op("Reshape", [local, graph.ints([-1, *(shape_of(source)[axis] for axis in rest)])])
    chosen = graph.op("Gather", [local, graph.neighbours(spec)], {"axis": 0})
    return graph.op("Squeeze", [chosen, graph.ints([1])]), ()


def _grouped(node: ir.Node, rest: Layout, regrid: Regrid, graph: EditGraph) -> tuple[ir.Value, Layout]:
    source = node.inputs[0]
    assert source is not None
    before, after = graph.facts.rows(source), graph.facts.rows(node.outputs[0])
    assert before is not None and after is not None
    spec = grouping_neighbourhood(regrid.factors, before.grid, after.grid)
    operands = [*local_rows(graph, source, (GRID, *rest), spec, 0.0), graph.neighbours(spec)]
    chosen = graph.op("GatherRows", operands, domain=RETOUCH_DOMAIN, dtype=dtype_of(source))
    sizes = [factor for factor in regrid.factors if factor != 1] + [shape_of(source)[axis] for axis in rest]
    return graph.op("Reshape", [chosen, graph.ints([-1, *sizes])]), regrid.inner_axes
