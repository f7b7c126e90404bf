"""ScatterRows: recomputed rows put into a cached tensor along axes anywhere in it."""

from __future__ import annotations

from typing import Any

from onnxscript import opset18, script

from retouch.export.ops._domain import RETOUCH

__all__ = ["ScatterRows"]

# Its annotations do not take constants as what they are.
op: Any = opset18


@script(RETOUCH, default_opset=op)
def ScatterRows(cached, index, rows, axis: int, end: int):  # noqa: N802  (an operator's name)
    """``cached`` with ``rows`` at the unique positions ``index`` [M], counted over its axes from ``axis`` to ``end``.

    ``rows`` have the shape of ``cached`` with M in the place of those axes. All other elements keep their bits.
    """
    one = op.Constant(value_ints=[1])
    lead = op.ReduceProd(op.Concat(one, op.Shape(cached, end=axis), axis=0), keepdims=1)
    rest = op.ReduceProd(op.Concat(one, op.Shape(cached, start=end), axis=0), keepdims=1)
    form = op.Concat(lead, op.Constant(value_ints=[-1]), rest, axis=0)
    flat = op.Reshape(cached, form)
    fresh = op.Reshape(rows, form)
    places = op.Expand(op.Unsqueeze(index, op.Constant(value_ints=[0, 2])), op.Shape(fresh))
    return op.Reshape(op.ScatterElements(flat, places, fresh, axis=1), op.Shape(cached))
