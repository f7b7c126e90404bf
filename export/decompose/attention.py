"""Multi-head attention."""

from __future__ import annotations

import math
from collections.abc import Sequence

import onnx_ir as ir

from retouch.export.decompose._pass import Fused, decomposition

__all__: list[str] = []


@decomposition("MultiHeadAttention")
def _multi_head(fused: Fused) -> Sequence[ir.Value | None]:
    """Query [B, S, H * D]; keys and values the same, or [B, H, L, D], or packed into the other two."""
    for index, what in ((4, "a key padding mask"), (6, "past keys"), (7, "past values")):
        if fused.input(index) is not None:
            raise fused.error(f"it has {what}")
    if fused.integer("unidirectional"):
        raise fused.error("it is causal")
    heads = fused.integer("num_heads")
    parts = [_with_bias(fused, part, place) for place, part in enumerate(_parts(fused))]
    query, key, value = (_by_head(fused, part, heads) for part in parts)
    return (_attend(fused, query, key, value, fused.input(5)),)


def _parts(fused: Fused) -> list[ir.Value]:
    query, key, value = fused.required(0), fused.input(1), fused.input(2)
    if key is not None and value is not None:
        return [query, key, value]
    packed = query if key is None else key
    # [B, S, H, 3, D] or, of keys and values, [B, L, H, 2, D].
    count = 3 if key is None else 2
    pieces = fused.tape.op_multi_out("Split", [packed], {"axis": 3, "num_outputs": count}, num_outputs=count)
    flat = [fused.op("Reshape", piece, fused.ints(0, 0, -1)) for piece in pieces]
    return flat if count == 3 else [query, *flat]


def _with_bias(fused: Fused, part: ir.Value, place: int) -> ir.Value:
    bias = fused.input(3)
    if bias is None:
        return part
    pieces = fused.tape.op_multi_out("Split", [bias], {"axis": 0, "num_outputs": 3}, num_outputs=3)
    return fused.op("Add", part, pieces[place])


def _by_head(fused: Fused, part: ir.Value, heads: int) -> ir.Value:
    if part in fused.node.inputs and fused.rank(part) == 4:
        return part
    return fused.op("Transpose", fused.op("Reshape", part, fused.ints(0, 0, heads, -1)), perm=[0, 2, 1, 3])


@decomposition("Attention")
def _packed(fused: Fused) -> Sequence[ir.Value | None]:
    """Input [B, S, C] times weights [C, 3 H D] gives query, key and value."""
    for index, what in ((3, "a mask"), (4, "past keys"), (6, "past values")):
        if fused.input(index) is not None:
            raise fused.error(f"it has {what}")
    if fused.integer("unidirectional") or fused.attribute("qkv_hidden_sizes") or fused.integer("do_rotary"):
        raise fused.error("it is causal, has different sizes of query and value, or turns its channels")
    heads = fused.integer("num_heads")
    projected = fused.added(fused.op("MatMul", fused.required(0), fused.required(1)), fused.input(2))
    pieces = fused.tape.op_multi_out("Split", [projected], {"axis": -1, "num_outputs": 3}, num_outputs=3)
    query, key, value = (_by_head(fused, piece, heads) for piece in pieces)
    return (_attend(fused, query, key, value, fused.input(5)),)


def _attend(fused: Fused, query: ir.Value, key: ir.Value, value: ir.Value, bias: ir.Value | None) -> ir.Value:
    """Softmax(Q K^T scale + bias) V, heads side by side again."""
    scores = fused.op("MatMul", query, fused.op("Transpose", key, perm=[0, 1, 3, 2]))
    scale = fused.number("scale", 0.0)
    scores = fused.op("Mul", scores, fused.scalar(scale, scores) if scale else _default_scale(fused, query))
    weights = fused.op("Softmax", fused.added(scores, bias), axis=-1)
    merged = fused.op("Transpose", fused.op("MatMul", weights, value), perm=[0, 2, 1, 3])
    return fused.op("Reshape", merged, fused.ints(0, 0, -1))


def _default_scale(fused: Fused, query: ir.Value) -> ir.Value:
    """One over the root of the channels of a head."""
    heads = fused.integer("num_heads")
    if fused.node.op_type == "Attention":
        width = fused.size(fused.required(1), -1) // (3 * heads)
    else:
        width = fused.size(fused.required(0), -1) // (1 if fused.rank(fused.required(0)) == 5 else heads)
    return fused.scalar(1 / math.sqrt(width), query)
