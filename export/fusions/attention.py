"""``softmax(scale * q merge(k)^T) merge(v)``  ->  EditAttention, and its form in stacked graphs  ->  StackedAttention.

The operators read recomputed and cached rows where they are; neither merged copies of keys and values nor the scores of
all rows are made.

Before: queries, keys and values are [rows, heads, depth], or [rows, samples, heads, depth]; to the operators the heads
of several samples are so many more heads. A product that is not scaled has the scale one. After: the same values, in
the same layout; the operators take and make rows [rows, heads * depth], so the axis of heads is gone where nothing else
needs it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from retouch.export.fusions._heads import joined_heads, joined_samples, use_joined
from retouch.export.fusions._uses import FUSED_TYPES, other_operand, sole_user
from retouch.export.model_shapes import attribute, constant
from retouch.export.ops._domain import DOMAIN
from retouch.export.ops.stacked_attention import LOWEST_SCORE

__all__ = ["fuse_attention"]


@dataclass(frozen=True)
class _Turns:
    """The transposes around an attention whose operands have the rows first: to and from heads first, rows last."""

    to_heads: tuple[int, ...]
    to_heads_transposed: tuple[int, ...]
    to_rows: tuple[int, ...]

    @property
    def rank(self) -> int:
        """The number of axes."""
        return len(self.to_rows)


_TURNS = (
    _Turns((1, 0, 2), (1, 2, 0), (1, 0, 2)),
    _Turns((1, 2, 0, 3), (1, 2, 3, 0), (2, 0, 1, 3)),
)


_TYPES = {"EditAttention": FUSED_TYPES, "StackedAttention": (ir.DataType.FLOAT,)}
"""The body of StackedAttention has a number in it."""


def fuse_attention(graph: ir.Graph) -> None:
    """Replaces every attention of rows over merged keys and values."""
    for node in list(graph):
        for turns in _TURNS:
            found = _attention(node, turns)
            if found is not None and all(_is_by_head(value, turns.rank, _TYPES[found[0]]) for value in found[1][:5]):
                _replace(graph, node, *found)
                break


def _replace(graph: ir.Graph, node: ir.Node, op_type: str, operands: list[ir.Value], scale: ir.Value | None) -> None:
    rows = [joined_heads(graph, value, node) for value in operands[:3]]
    cached = [joined_samples(graph, value, node) for value in operands[3:5]]
    factor = _one(graph, f"{node.name}_scale", operands[0]) if scale is None else scale
    made = ir.Node(DOMAIN, op_type, [*rows, *cached, *operands[5:], factor], name=f"{node.name}_edited")
    graph.insert_after(node, made)
    use_joined(graph, made, node.outputs[0])
    _remove_unused(graph, node)


def _one(graph: ir.Graph, name: str, like: ir.Value) -> ir.Value:
    """The scale of scores that are as they are: in half precision queries and keys were scaled, lest sums overflow."""
    assert like.dtype is not None
    number = ir.tensor(np.ones((), like.dtype.numpy()), like.dtype, name=name)
    one = ir.Value(name=name, shape=ir.Shape([]), type=ir.TensorType(like.dtype), const_value=number)
    graph.register_initializer(one)
    return one


def _attention(node: ir.Node, turns: _Turns) -> tuple[str, list[ir.Value], ir.Value | None] | None:
    """The operator that a node is the last one of, its operands, and its scale, which it need not have."""
    product = _made_by(_turned(node.outputs[0], turns.to_rows), "MatMul")
    weights = _made_by(product.inputs[0] if product is not None else None, "Softmax")
    if product is None or weights is None or attribute(weights, "axis", -1) not in (-1, turns.rank - 1):
        return None
    hidden = _hidden(weights.inputs[0], turns.rank - 1)
    found = _scores(weights.inputs[0] if hidden is None else hidden[0])
    if found is None:
        return None
    scores, scale = found
    query = _turned(scores.inputs[0], turns.to_heads)
    parts = _merged if hidden is None else _behind
    keys = parts(_turned(scores.inputs[1], turns.to_heads_transposed))
    values = parts(_turned(product.inputs[1], turns.to_heads))
    if query is None or keys is None or values is None:
        return None
    if hidden is not None:
        return "StackedAttention", [query, keys[1], values[1], keys[0], values[0], hidden[1]], scale
    if keys[2] is not values[2]:
        return None
    return "EditAttention", [query, keys[1], values[1], keys[0], values[0], keys[2]], scale


def _scores(value: ir.Value | None) -> tuple[ir.Node, ir.Value | None] | None:
    """The product of queries and keys that a value is, and the number it is multiplied by, if it is."""
    plain = _made_by(value, "MatMul")
    if plain is not None:
        return plain, None
    scaled = _made_by(value, "Mul")
    product = next((p for part in (scaled.inputs if scaled else ()) if (p := _made_by(part, "MatMul"))), None)
    scale = other_operand(scaled, product.outputs[0]) if scaled is not None and product is not None else None
    return None if product is None or scale is None or not _is_scalar(scale) else (product, scale)


def _hidden(scores: ir.Value | None, columns: int) -> tuple[ir.Value, ir.Value] | None:
    """The scores and the bias of ``max(s - largest s, lowest)`` with s = scores + bias (``stack.py``)."""
    floored = _made_by(scores, "Max")
    if floored is None or len(floored.inputs) != 2 or not _is(floored.inputs[1], LOWEST_SCORE):
        return None
    lowered = _made_by(floored.inputs[0], "Sub")
    seen = lowered.inputs[0].producer() if lowered is not None and lowered.inputs[0] is not None else None
    if lowered is None or seen is None or seen.op_type != "Add":
        return None
    largest = _made_by(lowered.inputs[1], "ReduceMax")
    if largest is None or largest.inputs[0] is not seen.outputs[0] or len(list(seen.outputs[0].uses())) != 2:
        return None
    if attribute(largest, "keepdims", 1) != 1 or len(largest.inputs) != 2 or not _is(largest.inputs[1], columns):
        return None
    bias = _unsqueezed(seen.inputs[1])
    return (seen.inputs[0], bias) if bias is not None and seen.inputs[0] is not None else None


def _unsqueezed(value: ir.Value | None) -> ir.Value | None:
    """The [queries, keys] that a value [1, ..., queries, keys] is made of."""
    producer = value.producer() if value is not None else None
    source = producer.inputs[0] if producer is not None and producer.op_type == "Unsqueeze" else None
    if value is None or source is None or value.shape is None or source.shape is None:
        return None
    lead = len(value.shape) - 2
    return source if len(source.shape) == 2 and lead > 0 and all(size == 1 for size in value.shape[:lead]) else None


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


def _merged(value: ir.Value | None) -> list[ir.Value] | None:
    """The cached tensor, the rows and the index of a merge along the first axis."""
    producer = value.producer() if value is not None else None
    if producer is None or (producer.domain, producer.op_type) != (DOMAIN, "MaskedMerge"):
        return None
    cached, index, rows = producer.inputs
    if cached is None or index is None or rows is None or index.shape is None or index.shape[-1] != 1:
        return None
    return [cached, rows, index]


def _behind(value: ir.Value | None) -> list[ir.Value] | None:
    """The cached tensor and the rows that were put behind it."""
    producer = value.producer() if value is not None else None
    if producer is None or producer.op_type != "Concat" or attribute(producer, "axis") != 0:
        return None
    parts = [part for part in producer.inputs if part is not None]
    return parts if len(parts) == 2 else None


def _is(value: ir.Value | None, number: float) -> bool:
    """Whether a value is a constant of that one number."""
    array = None if value is None else constant(value)
    return array is not None and array.size == 1 and array.item() == number


def _is_scalar(value: ir.Value) -> bool:
    return value.shape is not None and all(size == 1 for size in value.shape)


def _is_by_head(value: ir.Value, rank: int, types: Sequence[ir.DataType]) -> bool:
    if value.shape is None or len(value.shape) != rank or value.dtype not in types:
        return False
    return all(isinstance(size, int) for size in value.shape[1:])


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
