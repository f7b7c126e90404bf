"""Writes RMS norms with a division: ``x (1 / sqrt(mean(x^2) + e))``  ->  ``x / sqrt(mean(x^2) + e)``.

That is the form of the paper (Zhang and Sennrich, Root Mean Square Layer Normalization, 2019), which runtimes recognise
and compute in one kernel; exporters write ``rsqrt`` as a square root and a reciprocal.
"""

from __future__ import annotations

import onnx_ir as ir
from onnx_ir.passes import common as passes

from retouch.export.model_shapes import dtype_of, shape_of

__all__ = ["divide_rms"]


def divide_rms(model: ir.Model) -> int:
    """Rewrites a model in place; returns the number of norms changed.

    Requires: static shapes.
    Ensures: all other values are computed as before; the norms change by rounding only.
    """
    changed = 0
    for node in list(model.graph):
        root = _root_of(node)
        if root is None:
            continue
        division = ir.Node("", "Div", [root[0], root[1]], name=f"{node.name}_division")
        result, output = division.outputs[0], node.outputs[0]
        result.type, result.shape = ir.TensorType(dtype_of(output)), ir.Shape(shape_of(output))
        model.graph.insert_before(node, division)
        output.replace_all_uses_with(result, replace_graph_outputs=True)
        result.name = output.name
        model.graph.remove(node, safe=True)
        changed += 1
    passes.RemoveUnusedNodesPass()(model)
    return changed


def _root_of(node: ir.Node) -> tuple[ir.Value, ir.Value] | None:
    """``x`` and ``sqrt(mean(x^2) + e)`` if the node is a product of ``x`` and the reciprocal of that."""
    if node.op_type != "Mul":
        return None
    for source, factor in (node.inputs, reversed(node.inputs)):
        reciprocal = _made_by(factor, "Reciprocal")
        root = _made_by(reciprocal.inputs[0], "Sqrt") if reciprocal is not None else None
        if root is not None and source is not None and _is_mean_square(root.inputs[0], source):
            return source, root.outputs[0]
    return None


def _is_mean_square(value: ir.Value | None, source: ir.Value) -> bool:
    total = _made_by(value, "Add")
    means = [_made_by(operand, "ReduceMean") for operand in total.inputs] if total is not None else []
    squares = [_made_by(mean.inputs[0], "Pow") for mean in means if mean is not None]
    return any(square is not None and square.inputs[0] is source for square in squares)


def _made_by(value: ir.Value | None, op_type: str) -> ir.Node | None:
    node = value.producer() if value is not None else None
    return node if node is not None and node.op_type == op_type else None
