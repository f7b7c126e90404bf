"""``softmax(scale * q merge(k)^T) merge(v)``  ->  EditAttention.

The operator reads recomputed and cached rows where they are; neither merged copies of keys and values nor the scores of
all rows are made.

Before: queries, keys and values are float32 [rows, heads, depth] without further axes. After: the same values, in the
same layout.
"""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from retouch.export.fusions._uses import other_operand, sole_user
from retouch.export.model_shapes import attribute
from retouch.export.ops._domain import DOMAIN

__all__ = ["fuse_attention"]

_BY_HEAD = (1, 0, 2)
_BY_HEAD_TRANSPOSED = (1, 2, 0)


def fuse_attention(graph: ir.Graph) -> None:
    """Replaces every attention of rows over merged keys and values."""
    for node in list(graph):
        operands = _operands(node)
        if operands is None:
            continue
        made = ir.Node(DOMAIN, "EditAttention", operands, name=f"{node.name}_edited")
        graph.insert_after(node, made)
        old, new = node.outputs[0], made.outputs[0]
        new.name, new.type, new.shape = old.name, old.type, old.shape
        old.replace_all_uses_with(new, replace_graph_outputs=True)
        _remove_unused(graph, node)


def _operands(node: ir.Node) -> list[ir.Value] | None:
    """The operands of EditAttention, if a node is the last one of an attention over merged rows."""
    product = _made_by(_turned(node.outputs[0], _BY_HEAD), "MatMul")
    weights = _made_by(product and product.inputs[0], "Softmax")
    scaled = _made_by(weights and weights.inputs[0], "Mul")
    if product is None or weights is None or scaled is None or attribute(weights, "axis", -1) not in (-1, 2):
        return None
    scores = next((found for value in scaled.inputs if (found := _made_by(value, "MatMul")) is not None), None)
    scale = other_operand(scaled, scores.outputs[0]) if scores is not None else None
    if scores is None or scale is None or not _is_scalar(scale):
        return None
    query = _turned(scores.inputs[0], _BY_HEAD)
    keys = _merged(_turned(scores.inputs[1], _BY_HEAD_TRANSPOSED))
    values = _merged(_turned(product.inputs[1], _BY_HEAD))
    if query is None or keys is None or values is None or keys[1] is not values[1]:
        return None
    operands = [query, keys[2], values[2], keys[0], values[0], keys[1], scale]
    return operands if all(_is_by_head(value) for value in operands[:5]) else None


def _made_by(value: ir.Value | None, op_type: str) -> ir.Node | None:
    """The node that makes a value for one user only, if it is that operator."""
    producer = value.producer() if value is not None else None
    if producer is None or producer.op_type != op_type or producer.domain != "" or sole_user(value) is None:  # type: ignore[arg-type]
        return None
    return producer


def _turned(value: ir.Value | None, perm: Sequence[int]) -> ir.Value | None:
    """What a transpose of that order is a transpose of."""
    producer = value.producer() if value is not None else None
    if producer is None or producer.op_type != "Transpose" or tuple(attribute(producer, "perm", ())) != tuple(perm):
        return None
    return producer.inputs[0]


def _merged(value: ir.Value | None) -> tuple[ir.Value, ir.Value, ir.Value] | None:
    """The cached tensor, the index and the rows of a merge along the first axis."""
    producer = value.producer() if value is not None else None
    if producer is None or (producer.domain, producer.op_type) != (DOMAIN, "MaskedMerge"):
        return None
    cached, index, rows = producer.inputs
    if cached is None or index is None or rows is None or index.shape is None or index.shape[-1] != 1:
        return None
    return cached, index, rows


def _is_scalar(value: ir.Value) -> bool:
    return value.shape is not None and all(size == 1 for size in value.shape)


def _is_by_head(value: ir.Value) -> bool:
    return value.shape is not None and len(value.shape) == 3 and value.dtype == ir.DataType.FLOAT


def _remove_unused(graph: ir.Graph, node: ir.Node) -> None:
    """Removes a node, and those that only it used."""
    pending = [node]
    while pending:
        one = pending.pop()
        if one.graph is None or any(value.uses() or value.is_graph_output() for value in one.outputs):
            continue
        sources = [value.producer() for value in one.inputs if value is not None]
        graph.remove(one, safe=True)
        pending += [source for source in sources if source is not None]
