"""GroupMoments: mean and variance of every group of channels, as a base run keeps them."""

from __future__ import annotations

from typing import Any

import onnx
from onnxscript import opset18, script

from retouch.export.ops._domain import RETOUCH

__all__ = ["GroupMoments"]

# Its annotations do not take constants as what they are.
op: Any = opset18

_FLOAT, _DOUBLE = onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE


@script(RETOUCH, default_opset=op)
def GroupMoments(value, runs):  # noqa: N802  (an operator's name)
    """Mean and variance [2, B, G] of the groups of ``value`` [B, C, ...], in float32.

    ``runs`` is [B, G, -1, L]: sums are float32 within runs of L numbers, then double over the runs' means and
    variances. The combination is that of Chan, Golub and LeVeque, Updating Formulae and a Pairwise Algorithm for
    Computing Sample Variances, 1979. One float32 sum over a whole group puts errors of 1e-5 into a trained model's
    output.
    """
    last = op.Constant(value_ints=[3])
    over_runs = op.Constant(value_ints=[2])
    parts = op.Reshape(op.Cast(value, to=_FLOAT), runs)
    means = op.ReduceMean(parts, last, keepdims=1)
    squares = op.ReduceSumSquare(op.Sub(parts, means), last, keepdims=0)
    length = op.Cast(op.Gather(runs, last), to=_DOUBLE)
    inside = op.Div(op.Cast(squares, to=_DOUBLE), length)
    means = op.Cast(op.Squeeze(means, last), to=_DOUBLE)
    mean = op.ReduceMean(means, over_runs, keepdims=1)
    deviation = op.Sub(means, mean)
    variance = op.ReduceMean(op.Add(inside, op.Mul(deviation, deviation)), over_runs, keepdims=1)
    both = op.Cast(op.Concat(mean, variance, axis=2), to=_FLOAT)
    return op.Transpose(both, perm=[2, 0, 1])
