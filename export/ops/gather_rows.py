"""GatherRows: the rows a neighbourhood names, from active rows, cached rows and a pad row."""

from __future__ import annotations

from onnxscript import opset18 as op
from onnxscript import script

from retouch.export.ops._domain import RETOUCH

__all__ = ["GatherRows"]


@script(RETOUCH, default_opset=op)
def GatherRows(rows, cached, halo, pad, neighbours):  # noqa: N802  (an operator's name)
    """``neighbours`` [M, T] into the table [rows [A, ...]; cached[halo] [H, ...]; pad [1, ...]]: [M, T, ...]."""
    table = op.Concat(rows, op.Gather(cached, halo, axis=0), pad, axis=0)
    return op.Gather(table, neighbours, axis=0)
