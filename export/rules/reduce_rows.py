"""Reductions over all rows of a grid: global pooling, squeeze-and-excite, response norms, normalisers of attention."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import onnx_ir as ir

from retouch.export.lattice import Fact, Statistic
from retouch.export.layout import default_layout
from retouch.export.model_shapes import dtype_of, shape_of
from retouch.export.rules._rule import rule
from retouch.export.rules._statistic import base_rows, held, in_float32, set_moved

if TYPE_CHECKING:
    from retouch.export.analysis import Facts
    from retouch.export.emit import EditGraph

__all__ = ["GlobalPool", "emit_reduced_rows", "reads_all_rows"]

_MEANS = frozenset({"ReduceMean", "GlobalAveragePool", "AveragePool"})
_SUMS = frozenset({"ReduceSum", "ReduceSumSquare", "ReduceL1"})
_OTHERS = frozenset(
    {
        "GlobalLpPool",
        "GlobalMaxPool",
        "MaxPool",
        "ReduceL2",
        "ReduceLogSum",
        "ReduceLogSumExp",
        "ReduceMax",
        "ReduceMin",
        "ReduceProd",
    }
)


def reads_all_rows(node: ir.Node) -> bool:
    """Whether a reduction over the rows cannot be brought up to date from the active ones alone."""
    return node.op_type in _OTHERS


@rule("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")
class GlobalPool:
    """A statistic over all axes behind the channels."""

    def transfer(self, node: ir.Node, facts: Facts) -> list[Fact] | str:
        """A statistic, if the grid lies on spatial axes."""
        rows = facts.rows(node.inputs[0])
        if rows is None or min(rows.axes) < 2:
            return "the grid does not lie on the spatial axes"
        return [Statistic()]

    def emit(self, node: ir.Node, graph: EditGraph) -> None:
        """The statistic, brought up to date."""
        emit_reduced_rows(node, tuple(range(2, len(shape_of(node.inputs[0])))), graph)


def emit_reduced_rows(node: ir.Node, axes: tuple[int, ...], graph: EditGraph) -> None:
    """The result of a reduction over axes that all rows are among.

    Sums and means move by what the active rows changed. Others, such as a maximum, are taken over all rows again: that
    is no multiplication, and an extreme that was replaced says nothing about the next.
    """
    if held(node, graph):
        return
    if not reads_all_rows(node):
        set_moved(node, _change(node, axes, graph), graph)
        return
    inputs = [graph.whole(value) for value in node.inputs]
    graph.set_whole(node.outputs[0], graph.clone(node, inputs)[0])


def _change(node: ir.Node, axes: tuple[int, ...], graph: EditGraph) -> ir.Value:
    """What the active rows add to the result, in the result's shape."""
    source, output = node.inputs[0], node.outputs[0]
    rows = graph.facts.rows(source)
    assert source is not None and rows is not None
    shape = shape_of(source)
    layout = default_layout(shape, rows)
    new, old = (
        in_float32(tensor, source, graph)
        for tensor in (graph.rows_in(source, layout), base_rows(source, layout, graph))
    )
    places = [0, *(place for place, axis in enumerate(layout) if axis in axes)]
    total = graph.op("ReduceSum", [_difference(node.op_type, new, old, graph), graph.ints(places)], {"keepdims": 0})
    if node.op_type in _MEANS:
        kind = np.float64 if dtype_of(source) == ir.DataType.DOUBLE else np.float32
        share = np.array(1.0 / math.prod(shape[axis] for axis in axes), dtype=kind)
        total = graph.op("Mul", [total, graph.constant(share)])
    return graph.op("Reshape", [total, graph.ints(shape_of(output))])


def _difference(op_type: str, new: ir.Value, old: ir.Value, graph: EditGraph) -> ir.Value:
    """The difference of what is summed, taken row by row so that no large sums cancel."""
    if op_type == "ReduceL1":
        new, old = graph.op("Abs", [new]), graph.op("Abs", [old])
    difference = graph.op("Sub", [new, old])
    return graph.op("Mul", [difference, graph.op("Add", [new, old])]) if op_type == "ReduceSumSquare" else difference
