"""BatchEditConv: a convolution of the active rows of several samples, which share their rows."""

from __future__ import annotations

from onnxscript import opset18 as op
from onnxscript import script

from retouch.export.ops._domain import RETOUCH

__all__ = ["BatchEditConv"]


@script(RETOUCH, default_opset=op)
def BatchEditConv(rows, cached, halo, pad, neighbours, weight, bias, form):  # noqa: N802  (an operator's name)
    """What EditConv computes, for every sample of a batch: [M, B, C_out].

    ``rows`` are [A, B, C], ``cached`` and ``pad`` likewise; ``weight`` [C_out, T * C] is for all samples; ``bias`` is
    [C_out], or [B, C_out] if every sample has its own. ``form`` is [-1, B, C_out].
    """
    table = op.Concat(rows, op.Gather(cached, halo, axis=0), pad, axis=0)
    gathered = op.Transpose(op.Gather(table, neighbours, axis=0), perm=[0, 2, 1, 3])
    product = op.Gemm(op.Flatten(gathered, axis=2), weight, transB=1)
    return op.Add(op.Reshape(product, form), bias)
