"""EditAttention: active queries against cached keys and values, the recomputed ones in their places."""

from __future__ import annotations

from onnxscript import opset18 as op
from onnxscript import script

from retouch.export.ops._domain import RETOUCH

__all__ = ["EditAttention"]


@script(RETOUCH, default_opset=op)
def EditAttention(query, key, value, cached_key, cached_value, index, scale):  # noqa: N802  (an operator's name)
    """softmax(``scale`` q k^T) v per head: [M, heads, depth of values].

    ``query`` is [M, heads, depth]. ``key`` [K, heads, depth] and ``value`` stand for the rows ``index`` [K, 1] of
    ``cached_key`` [N, heads, depth] and ``cached_value``.
    """
    keys = op.Transpose(op.ScatterND(cached_key, index, key), perm=[1, 2, 0])
    scores = op.MatMul(op.Transpose(query, perm=[1, 0, 2]), keys)
    weights = op.Softmax(op.Mul(scores, scale), axis=2)
    values = op.Transpose(op.ScatterND(cached_value, index, value), perm=[1, 0, 2])
    return op.Transpose(op.MatMul(weights, values), perm=[1, 0, 2])
