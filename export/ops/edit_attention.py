"""EditAttention: active queries against cached keys and values, the recomputed ones in their places."""

from __future__ import annotations

from typing import Any

from onnxscript import opset18, script

from retouch.export.ops._domain import RETOUCH

__all__ = ["EditAttention"]

# Its annotations do not take constants as what they are.
op: Any = opset18


@script(RETOUCH, default_opset=op)
def EditAttention(query, key, value, cached_key, cached_value, index, scale):  # noqa: N802  (an operator's name)
    """softmax(``scale`` q k^T) v per head: [M, heads * depth of values].

    ``query`` is [M, heads * depth]. ``key`` [K, heads * depth] and ``value`` stand for the rows ``index`` [K, 1] of
    ``cached_key`` [N, heads, depth] and ``cached_value``.
    """
    key_row, value_row = op.Shape(cached_key, start=1), op.Shape(cached_value, start=1)
    as_many = op.Constant(value_ints=[0])
    by_head = op.Concat(as_many, key_row, axis=0)
    new_keys = op.Reshape(key, by_head)
    new_values = op.Reshape(value, op.Concat(as_many, value_row, axis=0))
    queries = op.Reshape(query, by_head)
    keys = op.Transpose(op.ScatterND(cached_key, index, new_keys), perm=[1, 2, 0])
    scores = op.MatMul(op.Transpose(queries, perm=[1, 0, 2]), keys)
    weights = op.Softmax(op.Mul(scores, scale), axis=2)
    values = op.Transpose(op.ScatterND(cached_value, index, new_values), perm=[1, 0, 2])
    mixed = op.Transpose(op.MatMul(weights, values), perm=[1, 0, 2])
    flat = op.Concat(as_many, op.ReduceProd(value_row, keepdims=1), axis=0)
    return op.Reshape(mixed, flat)
