"""EditGroupNorm: a group norm whose moments follow what the active rows changed."""

from __future__ import annotations

from typing import Any

from onnxscript import opset18, script

from retouch.export.ops._domain import RETOUCH

__all__ = ["EditGroupNorm"]

# Its annotations do not take constants as what they are.
op: Any = opset18


@script(RETOUCH, default_opset=op)
def EditGroupNorm(rows, cached, index, moments, grouping, share, epsilon):  # noqa: N802  (an operator's name)
    """``rows`` [M, C] normalised without affine map [M, C], and the moments they are normalised by [2, 1, G].

    BatchEditGroupNorm is the same function of ``rows`` [M, B, C], ``cached`` [N, B, C], ``moments`` [2, B, G] and
    ``grouping`` [B, G, C / G].

    ``moments`` are those of ``cached`` [N, C]. They move by the sums over the rows ``index`` [M] of x - y and of
    (x - y)(x + y - 2 mean), y being cached, times ``share``, one over the number of elements of a group. Both sums are
    differences taken row by row, so that no large sums cancel. ``grouping`` is [1, G, C / G].
    """
    old = op.Gather(cached, index, axis=0)
    mean = op.Gather(moments, op.Constant(value_int=0), axis=0)
    variance = op.Gather(moments, op.Constant(value_int=1), axis=0)
    last = op.Constant(value_ints=[2])
    first = op.Constant(value_ints=[0])
    difference = op.Sub(rows, old)
    twice = op.Unsqueeze(op.Add(mean, mean), last)
    centre = op.Flatten(op.Expand(twice, grouping), axis=1)
    spread = op.Mul(difference, op.Sub(op.Add(rows, old), centre))
    moved = op.ReduceSum(op.Reshape(op.ReduceSum(difference, first, keepdims=0), grouping), last, keepdims=0)
    moved = op.Mul(moved, share)
    widened = op.ReduceSum(op.Reshape(op.ReduceSum(spread, first, keepdims=0), grouping), last, keepdims=0)
    widened = op.Sub(op.Mul(widened, share), op.Mul(moved, moved))
    new_mean = op.Add(mean, moved)
    new_variance = op.Max(op.Add(variance, widened), op.Constant(value_float=0.0))
    scale = op.Reciprocal(op.Sqrt(op.Add(new_variance, epsilon)))
    offset = op.Neg(op.Mul(new_mean, scale))
    factors = op.Flatten(op.Expand(op.Unsqueeze(scale, last), grouping), axis=1)
    offsets = op.Flatten(op.Expand(op.Unsqueeze(offset, last), grouping), axis=1)
    normed = op.Add(op.Mul(rows, factors), offsets)
    return normed, op.Concat(op.Unsqueeze(new_mean, first), op.Unsqueeze(new_variance, first), axis=0)
