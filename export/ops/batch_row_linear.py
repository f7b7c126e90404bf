"""BatchRowLinear: a matrix product of the rows of several samples with weights that are the same in every run."""

from __future__ import annotations

from onnxscript import opset18 as op
from onnxscript import script

from retouch.export.ops._domain import RETOUCH

__all__ = ["BatchRowLinear"]


@script(RETOUCH, default_opset=op)
def BatchRowLinear(rows, weight, bias, form, transB: int):  # noqa: N802, N803  (names of ONNX)
    """What RowLinear computes, for every sample of a batch: [M, B, C_out].

    ``rows`` are [M, B, C]; ``weight`` [C, C_out], or [C_out, C] transposed, is for all samples; ``bias`` is [C_out], or
    [B, C_out] if every sample has its own. ``form`` is [-1, B, C_out].
    """
    product = op.Gemm(op.Flatten(rows, axis=2), weight, transB=transB)
    return op.Add(op.Reshape(product, form), bias)
