"""TokenLinear: a matrix product of tokens, along any axes, with weights that are the same in every run."""

from __future__ import annotations

from onnxscript import opset18 as op
from onnxscript import script

from retouch.export.ops._domain import RETOUCH

__all__ = ["TokenLinear"]


@script(RETOUCH, default_opset=op)
def TokenLinear(tokens, weight):  # noqa: N802  (a name of ONNX)
    """``tokens`` [.., C] times ``weight`` [C, C_out]: [.., C_out]."""
    return op.MatMul(tokens, weight)
