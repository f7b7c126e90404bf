"""MaskedMerge: recomputed rows put into a cached tensor."""

from __future__ import annotations

from onnxscript import opset18 as op
from onnxscript import script

from retouch.export.ops._domain import RETOUCH

__all__ = ["MaskedMerge"]


@script(RETOUCH, default_opset=op)
def MaskedMerge(cached, index, rows):  # noqa: N802  (an operator's name)
    """``cached`` [N, ...] with ``rows`` [M, ...] at the unique positions ``index`` [M]; other rows keep their bits."""
    axis = op.Constant(value_ints=[1])
    return op.ScatterND(cached, op.Unsqueeze(index, axis), rows)  # type: ignore[arg-type]
