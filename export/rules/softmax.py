"""Softmax and its relatives along an axis that carries no rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import onnx_ir as ir

from retouch.export.lattice import Fact
from retouch.export.model_shapes import attribute, normal_axis, shape_of
from retouch.export.rules._rule import rule

if TYPE_CHECKING:
    from retouch.export.analysis import Facts
    from retouch.export.emit import EditGraph

__all__ = ["Softmax"]


@rule("Softmax", "LogSoftmax", "Hardmax", "LpNormalization", "CumSum")
class Softmax:
    """Operators that work along one axis and keep the shape."""

    def transfer(self, node: ir.Node, facts: Facts) -> list[Fact] | str:
        """The same rows."""
        rows = facts.rows(node.inputs[0])
        axis = _axis(node)
        if rows is None or axis is None:
            return "its first operand carries no rows or its axis is not constant"
        if axis in rows.axes:
            return "it works along the grid"
        if shape_of(node.inputs[0])[axis] == 1:
            return "it works along an axis of size one"
        return [rows]

    def emit(self, node: ir.Node, graph: EditGraph) -> None:
        """The same operator on the emitted axis."""
        source = node.inputs[0]
        assert source is not None
        emitted, axis = graph.rows(source), _axis(node)
        assert axis is not None
        position = emitted.layout.index(axis)
        if node.op_type == "CumSum":
            import numpy as np

            inputs = [emitted.value, graph.constant(np.array(position, dtype=np.int64))]
            result = graph.clone(node, inputs)[0]
        else:
            scores = graph.scored(node, emitted.value, emitted.layout)
            result = graph.clone(node, [scores], axis=position)[0]
        graph.set_rows(node.outputs[0], result, emitted.layout)


def _axis(node: ir.Node) -> int | None:
    from retouch.export.model_shapes import constant

    rank = len(shape_of(node.inputs[0]))
    if node.op_type == "CumSum":
        given = constant(node.inputs[1])
        return None if given is None else normal_axis(int(given.reshape(())), rank)
    return normal_axis(int(attribute(node, "axis", -1)), rank)
