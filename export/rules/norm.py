"""Normalisation over axes that carry no rows, and inference-time batch normalisation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import onnx_ir as ir

from retouch.export.lattice import Fact
from retouch.export.layout import GRID, Layout
from retouch.export.model_shapes import attribute, constant, dtype_of, normal_axis, shape_of
from retouch.export.rules._rule import rule

if TYPE_CHECKING:
    from retouch.export.analysis import Facts
    from retouch.export.emit import EditGraph

__all__ = ["BatchNormalization", "LayerNormalization"]


@rule("LayerNormalization", "RMSNormalization")
class LayerNormalization:
    """LayerNormalization and RMSNormalization: all normalised axes stand behind the grid."""

    def transfer(self, node: ir.Node, facts: Facts) -> list[Fact] | str:
        """The same rows."""
        rows = facts.rows(node.inputs[0])
        if rows is None:
            return "its first operand carries no rows"
        if len(node.outputs) > 1:
            return "its statistics outputs are used"
        if max(rows.axes) >= _axis(node):
            return "it normalises over the grid"
        if any(facts.rows(value) is not None for value in node.inputs[1:]):
            return "its scale or bias depends on the editable input"
        return [rows]

    def emit(self, node: ir.Node, graph: EditGraph) -> None:
        """The same operator with the normalised axes last."""
        source = node.inputs[0]
        assert source is not None
        rank, axis = len(shape_of(source)), _axis(node)
        lead = [unit for unit in graph.rows_layout(source) if unit == GRID or unit < axis]
        layout = (*lead, *range(axis, rank))
        if any(value is not None and len(shape_of(value)) > rank - axis for value in node.inputs[1:]):
            result = _scaled_per_row(node, graph, layout)
        else:
            inputs = [graph.rows_in(source, layout), *(graph.whole(value) for value in node.inputs[1:])]
            result = graph.clone(node, inputs, axis=axis - rank)[0]
        graph.set_rows(node.outputs[0], result, layout)


def _scaled_per_row(node: ir.Node, graph: EditGraph, layout: Layout) -> ir.Value:
    """The norm, and behind it a scale and bias that may be others for every row: exporters fill them up with ones."""
    source, axis = node.inputs[0], _axis(node)
    rows = graph.facts.rows(source)
    assert source is not None and rows is not None
    shape = shape_of(source)
    ones = graph.constant(np.ones(shape[axis:], dtype_of(source).numpy()))
    result = graph.clone(node, [graph.rows_in(source, layout), ones], axis=axis - len(shape))[0]
    for op_type, value in zip(("Mul", "Add"), node.inputs[1:], strict=False):
        if value is not None:
            result = graph.op(op_type, [result, graph.aligned(value, len(shape), rows, layout)])
    return result


@rule("BatchNormalization")
class BatchNormalization:
    """With constant statistics: one multiplication and one addition per channel."""

    def transfer(self, node: ir.Node, facts: Facts) -> list[Fact] | str:
        """The same rows."""
        rows = facts.rows(node.inputs[0])
        if rows is None or 1 in rows.axes or 0 in rows.axes:
            return "its channel axis carries rows"
        if any(constant(value) is None for value in node.inputs[1:]):
            return "its statistics are not constant"
        return [rows]

    def emit(self, node: ir.Node, graph: EditGraph) -> None:
        """The affine map of every channel."""
        source = node.inputs[0]
        assert source is not None
        scale, bias, mean, variance = (constant(value) for value in node.inputs[1:5])
        assert scale is not None and bias is not None and mean is not None and variance is not None
        factor = scale / np.sqrt(variance + np.asarray(attribute(node, "epsilon", 1e-5), variance.dtype))
        layout = (*(unit for unit in graph.rows_layout(source) if unit != 1), 1)
        scaled = graph.op("Mul", [graph.rows_in(source, layout), graph.constant(factor.astype(scale.dtype))])
        shift = graph.constant((bias - mean * factor).astype(scale.dtype))
        graph.set_rows(node.outputs[0], graph.op("Add", [scaled, shift]), layout)


def _axis(node: ir.Node) -> int:
    return normal_axis(int(attribute(node, "axis", -1)), len(shape_of(node.inputs[0])))
