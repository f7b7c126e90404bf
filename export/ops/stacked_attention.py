"""StackedAttention: queries of several edits against cached keys and values and the recomputed ones of all edits."""

from __future__ import annotations

from typing import Any

from onnxscript import opset18, script

from retouch.export.ops._domain import RETOUCH

__all__ = ["LOWEST_SCORE", "StackedAttention"]

LOWEST_SCORE = -80.0
"""The least exponent a score may be from its row's largest: its exponential is next to nothing, but a normal number."""

# Its annotations do not take constants as what they are.
op: Any = opset18


@script(RETOUCH, default_opset=op)
def StackedAttention(query, key, value, cached_key, cached_value, bias, scale):  # noqa: N802  (an operator's name)
    """softmax(``scale`` q k^T + ``bias``) v per head: [M, heads * depth of values].

    ``query`` is [M, heads * depth]. The keys are those of ``cached_key`` [N, heads, depth] and behind them ``key``
    [K, heads * depth], and so the values. ``bias`` [M, N + K] is minus infinity where a query does not see a key; its
    weight is no more than next to nothing, for minus infinity in a softmax makes engines compute with denormal numbers.
    """
    key_row, value_row = op.Shape(cached_key, start=1), op.Shape(cached_value, start=1)
    as_many = op.Constant(value_ints=[0])
    by_head = op.Concat(as_many, key_row, axis=0)
    new_keys = op.Reshape(key, by_head)
    new_values = op.Reshape(value, op.Concat(as_many, value_row, axis=0))
    queries = op.Reshape(query, by_head)
    keys = op.Transpose(op.Concat(cached_key, new_keys, axis=0), perm=[1, 2, 0])
    scores = op.Mul(op.MatMul(op.Transpose(queries, perm=[1, 0, 2]), keys), scale)
    seen = op.Add(scores, op.Unsqueeze(bias, op.Constant(value_ints=[0])))
    lowered = op.Sub(seen, op.ReduceMax(seen, op.Constant(value_ints=[2]), keepdims=1))
    weights = op.Softmax(op.Max(lowered, op.Constant(value_float=-80.0)), axis=2)
    values = op.Transpose(op.Concat(cached_value, new_values, axis=0), perm=[1, 0, 2])
    mixed = op.Transpose(op.MatMul(weights, values), perm=[1, 0, 2])
    flat = op.Concat(as_many, op.ReduceProd(value_row, keepdims=1), axis=0)
    return op.Reshape(mixed, flat)
