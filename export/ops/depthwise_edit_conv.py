"""DepthwiseEditConv: a convolution of the active rows that leaves every channel to itself."""

from __future__ import annotations

from typing import Any

from onnxscript import opset18, script

from retouch.export.ops._domain import RETOUCH

__all__ = ["DepthwiseEditConv"]

# Its annotations do not take constants as what they are.
op: Any = opset18


@script(RETOUCH, default_opset=op)
def DepthwiseEditConv(rows, cached, halo, pad, neighbours, weight, bias):  # noqa: N802  (an operator's name)
    """Gathered neighbours [M, T, C] times ``weight`` [T, C], summed over T, plus ``bias`` [C]: [M, C]."""
    table = op.Concat(rows, op.Gather(cached, halo, axis=0), pad, axis=0)
    weighted = op.Mul(op.Gather(table, neighbours, axis=0), weight)
    return op.Add(op.ReduceSum(weighted, op.Constant(value_ints=[1]), keepdims=0), bias)
