"""Gather: table look-ups by row, and constant picks along any axis."""

from __future__ import annotations

from typing import TYPE_CHECKING

import onnx_ir as ir

from retouch.export.lattice import Fact, Invariant, Rows
from retouch.export.layout import GRID, Layout
from retouch.export.model_shapes import attribute, constant, normal_axis, shape_of
from retouch.export.rules._rule import rule
from retouch.export.rules.arrange import emit_taken, taken

if TYPE_CHECKING:
    from retouch.export.analysis import Facts
    from retouch.export.emit import EditGraph

__all__ = ["Gather"]


@rule("Gather")
class Gather:
    """Either the indices carry rows (an embedding) or the data do."""

    def transfer(self, node: ir.Node, facts: Facts) -> list[Fact] | str:
        """The rows on the axes of the result."""
        data, indices = facts.rows(node.inputs[0]), facts.rows(node.inputs[1])
        axis, rank = _axis(node), len(shape_of(node.inputs[1]))
        if data is None and isinstance(facts.of(node.inputs[0]), Invariant) and indices is not None:
            return [indices.moved(axis)]
        if data is None or not isinstance(facts.of(node.inputs[1]), Invariant):
            return "data and indices both depend on the editable input"
        if axis in data.axes:
            positions = _positions(node)
            if positions is None:
                return "it picks along the grid, not by a constant list"
            found = taken(data, {axis: positions}, facts.grids)
            return found if isinstance(found, str) else [found]
        return [Rows(data.grid, tuple(a if a < axis else a + rank - 1 for a in data.axes))]

    def emit(self, node: ir.Node, graph: EditGraph) -> None:
        """The same operator on rows of indices or of data."""
        if graph.facts.rows(node.inputs[0]) is None:
            self._by_rows(node, graph)
        else:
            self._from_rows(node, graph)

    def _by_rows(self, node: ir.Node, graph: EditGraph) -> None:
        data, indices = node.inputs[:2]
        assert data is not None and indices is not None
        axis, shape = _axis(node), shape_of(data)
        layout = graph.rows_layout(indices)
        rank = len(shape_of(indices))
        table = graph.clone(node, [graph.whole(data), graph.rows_in(indices, layout)])[0]
        result: Layout = (
            *range(axis),
            *(a if a == GRID else a + axis for a in layout),
            *(a + rank - 1 for a in range(axis + 1, len(shape))),
        )
        graph.set_rows(node.outputs[0], table, result)

    def _from_rows(self, node: ir.Node, graph: EditGraph) -> None:
        data, indices = node.inputs[:2]
        assert data is not None and indices is not None
        axis, rank = _axis(node), len(shape_of(indices))
        rows, positions = graph.facts.rows(data), _positions(node)
        if rows is not None and axis in rows.axes and positions is not None:
            graph.set_rows(node.outputs[0], *emit_taken(data, node.outputs[0], {axis: positions}, graph))
            return
        layout = graph.rows_layout(data)
        layout = layout if axis in layout else (*layout, axis)
        position = layout.index(axis)
        picked = graph.clone(node, [graph.rows_in(data, layout), graph.whole(indices)], axis=position)[0]
        result: list[int] = []
        for unit in layout:
            if unit == axis:
                result.extend(range(axis, axis + rank))
            else:
                result.append(unit if unit == GRID or unit < axis else unit + rank - 1)
        graph.set_rows(node.outputs[0], picked, tuple(result))


def _positions(node: ir.Node) -> list[int] | None:
    """The positions that constant indices on one axis pick."""
    indices, size = constant(node.inputs[1]), shape_of(node.inputs[0])[_axis(node)]
    return None if indices is None or indices.ndim != 1 else [int(index) % size for index in indices]


def _axis(node: ir.Node) -> int:
    return normal_axis(int(attribute(node, "axis", 0)), len(shape_of(node.inputs[0])))
