"""Moves scalar factors behind products: ``(a s) (b t)``  ->  ``(a b) (s t)``.

Exporters of attention scale queries and keys before their product. Behind it one multiplication is left, over scores,
which runtimes do as a part of the product.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from retouch.export.model_shapes import constant, constant_value, dtype_of, shape_of

__all__ = ["hoist_scales"]

_MOVES = frozenset({"Transpose", "Reshape", "Squeeze", "Unsqueeze", "Flatten"})
"""Operators that only move elements."""


@dataclass(frozen=True)
class _Scaled:
    """A multiplication by a scalar, and the value that it scales."""

    node: ir.Node
    source: ir.Value
    factor: float


def hoist_scales(model: ir.Model) -> int:
    """Rewrites a model in place; returns the number of factors moved.

    Requires: static shapes, no Constant nodes.
    Ensures: the values of products change by rounding only. Products of half-precision values are left alone, because
        there the factors keep the sums from overflowing.
    """
    moved = 0
    for node in list(model.graph):
        if not _is_float_product(node):
            continue
        factor = 1.0
        for operand in node.inputs[:2]:
            scaled = _scaled(operand)
            if scaled is not None:
                factor *= scaled.factor
                scaled.node.outputs[0].replace_all_uses_with(scaled.source)
                model.graph.remove(scaled.node, safe=True)
                moved += 1
        if factor != 1.0:
            _multiply_after(model.graph, node, factor)
    return moved


def _is_float_product(node: ir.Node) -> bool:
    product = node.op_type == "MatMul" or (node.op_type == "Einsum" and len(node.inputs) == 2)
    return product and dtype_of(node.outputs[0]) in (ir.DataType.FLOAT, ir.DataType.DOUBLE)


def _scaled(value: ir.Value | None) -> _Scaled | None:
    """The multiplication behind an operand, if its result goes into the product only."""
    while value is not None:
        node = value.producer()
        if node is None or len(list(value.uses())) != 1 or value.is_graph_output():
            return None
        if node.op_type == "Mul":
            return _by_scalar(node)
        if node.op_type not in _MOVES:
            return None
        value = node.inputs[0]
    return None


def _by_scalar(node: ir.Node) -> _Scaled | None:
    for source, scale in (node.inputs, reversed(node.inputs)):
        array = constant(scale)
        if source is None or array is None or array.size != 1 or constant(source) is not None:
            continue
        if shape_of(source) == shape_of(node.outputs[0]):
            return _Scaled(node, source, float(array.reshape(())))
    return None


def _multiply_after(graph: ir.Graph, node: ir.Node, factor: float) -> None:
    """Multiplies a node's result, which keeps its name, by a factor."""
    result = node.outputs[0]
    dtype = dtype_of(result)
    scale = constant_value(f"{node.name}_scale", np.array(factor, dtype=dtype.numpy()))
    graph.register_initializer(scale)
    product = ir.Node("", "Mul", [result, scale], name=f"{node.name}_scaled")
    scaled = product.outputs[0]
    scaled.type, scaled.shape = ir.TensorType(dtype), ir.Shape(shape_of(result))
    graph.insert_after(node, product)
    result.replace_all_uses_with(scaled, replace_graph_outputs=True)
    product.replace_input_with(0, result)
    scaled.name, result.name = result.name, f"{result.name}_unscaled"
