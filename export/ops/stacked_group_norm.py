"""StackedGroupNorm: a group norm of the rows of several edits, whose moments follow every edit by itself."""

from __future__ import annotations

from typing import Any

from onnxscript import opset18, script

from retouch.export.ops._domain import RETOUCH

__all__ = ["StackedGroupNorm"]

# Its annotations do not take constants as what they are.
op: Any = opset18


@script(RETOUCH, default_opset=op)
def StackedGroupNorm(rows, cached, index, moments, grouping, share, epsilon, owner, edits):  # noqa: N802
    """What EditGroupNorm computes of the rows of every edit, without the other edits' and without the new moments.

    ``owner`` [M] says which of the ``edits`` [E], which are counted from zero, a row belongs to. BatchStackedGroupNorm
    is the same function of rows [M, B, C].
    """
    old = op.Gather(cached, index, axis=0)
    mean = op.Gather(moments, op.Constant(value_int=0), axis=0)
    variance = op.Gather(moments, op.Constant(value_int=1), axis=0)
    first = op.Constant(value_ints=[0])
    second = op.Constant(value_ints=[1])
    last = op.Constant(value_ints=[-1])
    difference = op.Sub(rows, old)
    centre = op.Flatten(op.Expand(op.Unsqueeze(op.Add(mean, mean), last), grouping), axis=1)
    spread = op.Mul(difference, op.Sub(op.Add(rows, old), centre))
    own = op.CastLike(op.Equal(op.Unsqueeze(edits, second), op.Unsqueeze(owner, first)), rows)
    by_group = op.Concat(first, grouping, axis=0)
    moved = op.ReduceSum(op.Reshape(op.MatMul(own, op.Flatten(difference, axis=1)), by_group), last, keepdims=0)
    moved = op.Mul(moved, share)
    widened = op.ReduceSum(op.Reshape(op.MatMul(own, op.Flatten(spread, axis=1)), by_group), last, keepdims=0)
    widened = op.Sub(op.Mul(widened, share), op.Mul(moved, moved))
    new_variance = op.Max(op.Add(variance, widened), op.Constant(value_float=0.0))
    scale = op.Reciprocal(op.Sqrt(op.Add(new_variance, epsilon)))
    offset = op.Neg(op.Mul(op.Add(mean, moved), scale))
    factors = op.Unsqueeze(op.Gather(scale, owner, axis=0), last)
    offsets = op.Unsqueeze(op.Gather(offset, owner, axis=0), last)
    normed = op.Add(op.Mul(op.Reshape(rows, by_group), factors), offsets)
    return op.Reshape(normed, op.Shape(rows))
