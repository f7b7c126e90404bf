"""MomentAffine: what a group norm with known moments multiplies and shifts every channel by."""

from __future__ import annotations

from typing import Any

from onnxscript import opset18, script

from retouch.export.ops._domain import RETOUCH

__all__ = ["MomentAffine"]

# Its annotations do not take constants as what they are.
op: Any = opset18


@script(RETOUCH, default_opset=op)
def MomentAffine(moments, grouping, epsilon, row):  # noqa: N802  (an operator's name)
    """Scale and shift of every channel, each of the shape ``row``, by ``moments`` [2, B, G].

    Scale is 1 / sqrt(variance + epsilon), shift is -mean times scale. ``grouping`` is [B, G, C / G], and ``row`` is [C]
    for one sample or [B, C].
    """
    last = op.Constant(value_ints=[2])
    mean = op.Gather(moments, op.Constant(value_int=0), axis=0)
    variance = op.Gather(moments, op.Constant(value_int=1), axis=0)
    scale = op.Reciprocal(op.Sqrt(op.Add(variance, epsilon)))
    shift = op.Neg(op.Mul(mean, scale))
    scales = op.Reshape(op.Expand(op.Unsqueeze(scale, last), grouping), row)
    shifts = op.Reshape(op.Expand(op.Unsqueeze(shift, last), grouping), row)
    return scales, shifts
