"""MaskedMerge: recomputed rows put into a cached tensor."""

from __future__ import annotations

from onnxscript import opset18 as op
from onnxscript import script

from retouch.export.ops._domain import RETOUCH

__all__ = ["MaskedMerge"]


@script(RETOUCH, default_opset=op)
def MaskedMerge(cached, index, rows):  # noqa: N802  (an operator's name)
    """``cached`` with ``rows`` [M, ...] at the unique positions ``index`` [M, K] of its K leading axes.

    All other rows keep their bits.
    """
    return op.ScatterND(cached, index, rows)
