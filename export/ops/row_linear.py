"""RowLinear: a matrix product of few rows with weights that are the same in every run."""

from __future__ import annotations

from onnxscript import opset18 as op
from onnxscript import script

from retouch.export.ops._domain import RETOUCH

__all__ = ["RowLinear"]


@script(RETOUCH, default_opset=op)
def RowLinear(rows, weight, bias, transB: int):  # noqa: N802, N803  (names of ONNX)
    """``rows`` [M, C] times ``weight`` [C, C_out], or [C_out, C] transposed, plus ``bias`` [C_out]: [M, C_out]."""
    return op.Gemm(rows, weight, bias, transB=transB)
