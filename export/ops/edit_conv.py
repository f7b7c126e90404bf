"""EditConv: a convolution of the active rows only."""

from __future__ import annotations

from onnxscript import opset18 as op
from onnxscript import script

from retouch.export.ops._domain import RETOUCH

__all__ = ["EditConv"]


@script(RETOUCH, default_opset=op)
def EditConv(rows, cached, halo, pad, neighbours, weight, bias):  # noqa: N802  (an operator's name)
    """Gathered neighbours [M, T * C] times ``weight`` [C_out, T * C] transposed, plus ``bias`` [C_out]: [M, C_out]."""
    table = op.Concat(rows, op.Gather(cached, halo, axis=0), pad, axis=0)
    columns = op.Flatten(op.Gather(table, neighbours, axis=0), axis=1)
    return op.Gemm(columns, weight, bias, transB=1)
