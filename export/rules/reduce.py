"""Reductions over axes that carry no rows, or over all that do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import onnx_ir as ir

from retouch.export.lattice import Fact, Rows, Statistic
from retouch.export.layout import GRID
from retouch.export.model_shapes import attribute, constant, normal_axis, shape_of
from retouch.export.rules._rule import rule
from retouch.export.rules.reduce_rows import emit_reduced_rows

if TYPE_CHECKING:
    from retouch.export.analysis import Facts
    from retouch.export.emit import EditGraph

__all__ = ["ArgReduce", "Reduce", "reduced_axes"]

_REDUCTIONS = (
    "ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare"
)


@rule(*_REDUCTIONS.split())
class Reduce:
    """Any reduction, with or without the reduced axes kept."""

    def transfer(self, node: ir.Node, facts: Facts) -> list[Fact] | str:
        """The rows on the axes that remain, or a statistic where no row axis does."""
        rows, axes = facts.rows(node.inputs[0]), reduced_axes(node)
        if rows is None or axes is None:
            return "its axes are not constant"
        if set(rows.axes) <= set(axes):
            return [Statistic()]
        return _remaining(rows, axes, bool(attribute(node, "keepdims", 1)))

    def emit(self, node: ir.Node, graph: EditGraph) -> None:
        """The same reduction on the emitted axes."""
        source, axes = node.inputs[0], reduced_axes(node)
        assert source is not None and axes is not None
        if graph.facts.rows(node.outputs[0]) is None:
            emit_reduced_rows(node, axes, graph)
            return
        layout = graph.rows_layout(source)
        tensor = graph.rows_in(source, layout)
        present = [axis for axis in axes if axis in layout]
        positions, keep = [layout.index(axis) for axis in present], int(attribute(node, "keepdims", 1))
        if present and len(node.inputs) > 1:
            tensor = graph.clone(node, [tensor, graph.ints(positions)], keepdims=keep)[0]
        elif present and attribute(node, "axes") is not None:
            tensor = graph.clone(node, [tensor], axes=positions, keepdims=keep)[0]
        elif len(node.inputs) > 1 or attribute(node, "axes") is not None:
            # A reduction over axes of size one still applies its function (square root, logarithm, ...).
            tensor = graph.op("Unsqueeze", [tensor, graph.ints([len(layout)])])
            tensor = graph.op(node.op_type, [tensor, graph.ints([len(layout)])], {"keepdims": 0})
        kept = layout if keep else tuple(axis for axis in layout if axis not in axes)
        graph.set_rows(node.outputs[0], tensor, _renumbered(kept, axes, bool(keep)))


@rule("ArgMax", "ArgMin")
class ArgReduce:
    """Index of the extreme along one axis."""

    def transfer(self, node: ir.Node, facts: Facts) -> list[Fact] | str:
        """The rows on the axes that remain."""
        rows, axis = facts.rows(node.inputs[0]), _arg_axis(node)
        assert rows is not None
        if shape_of(node.inputs[0])[axis] == 1:
            return "it works along an axis of size one"
        return _remaining(rows, (axis,), bool(attribute(node, "keepdims", 1)))

    def emit(self, node: ir.Node, graph: EditGraph) -> None:
        """The same operator on the emitted axis."""
        source, axis = node.inputs[0], _arg_axis(node)
        assert source is not None
        emitted = graph.rows(source)
        tensor = graph.clone(node, [emitted.value], axis=emitted.layout.index(axis), keepdims=0)[0]
        kept = tuple(unit for unit in emitted.layout if unit != axis)
        graph.set_rows(node.outputs[0], tensor, _renumbered(kept, (axis,), bool(attribute(node, "keepdims", 1))))


def _remaining(rows: Rows, axes: tuple[int, ...], keepdims: bool) -> list[Fact] | str:
    if set(axes) & set(rows.axes):
        return "it reduces over a part of the grid"
    if keepdims:
        return [rows]
    return [Rows(rows.grid, tuple(axis - sum(other < axis for other in axes) for axis in rows.axes))]


def _renumbered(layout: tuple[int, ...], axes: tuple[int, ...], keepdims: bool) -> tuple[int, ...]:
    if keepdims:
        return layout
    return tuple(a if a == GRID else a - sum(other < a for other in axes) for a in layout)


def _arg_axis(node: ir.Node) -> int:
    return normal_axis(int(attribute(node, "axis", 0)), len(shape_of(node.inputs[0])))


def reduced_axes(node: ir.Node) -> tuple[int, ...] | None:
    """The axes a reduction works over, ``None`` if they are not constant."""
    rank = len(shape_of(node.inputs[0]))
    given = attribute(node, "axes")
    if given is None and len(node.inputs) > 1 and node.inputs[1] is not None:
        array = constant(node.inputs[1])
        if array is None:
            return None
        given = tuple(int(axis) for axis in array)
    if given is None or len(given) == 0:
        return () if attribute(node, "noop_with_empty_axes", 0) else tuple(range(rank))
    return tuple(normal_axis(int(axis), rank) for axis in given)
