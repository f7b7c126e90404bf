"""FLOPs of one dense evaluation of a node: a multiply-add counts as two."""

from __future__ import annotations

import math

import onnx_ir as ir

from retouch.export.einsum import equation_of
from retouch.export.model_shapes import attribute, shape_of

__all__ = ["flops"]


def flops(node: ir.Node) -> int:
    """FLOPs of the heavy operators (convolutions, matrix products, attention), 0 for all others."""
    if node.domain not in ("", "ai.onnx"):
        return 0
    match node.op_type:
        case "Conv":
            return 2 * math.prod(shape_of(node.outputs[0])) * math.prod(shape_of(node.inputs[1])[1:])
        case "ConvTranspose":
            return 2 * math.prod(shape_of(node.inputs[0])) * math.prod(shape_of(node.inputs[1])[1:])
        case "MatMul":
            return 2 * math.prod(shape_of(node.outputs[0])) * shape_of(node.inputs[0])[-1]
        case "Gemm":
            depth = shape_of(node.inputs[0])[0 if attribute(node, "transA", 0) else 1]
            return 2 * math.prod(shape_of(node.outputs[0])) * depth
        case "Einsum":
            return _einsum(node)
        case "Attention":
            return 4 * math.prod(shape_of(node.inputs[0])) * shape_of(node.inputs[1])[-2]
    return 0


def _einsum(node: ir.Node) -> int:
    terms = equation_of(node).terms
    if len(terms) < 2:
        return 0
    sizes: dict[str, int] = {}
    for term, value in zip(terms, node.inputs, strict=True):
        for label, size in zip(term, shape_of(value), strict=True):
            sizes[label] = max(size, sizes.get(label, 1))
    return 2 * math.prod(sizes.values())
