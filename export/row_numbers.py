"""Numbers of rows among the positions along some of a grid's dims."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from retouch.export.node_builder import NodeBuilder

__all__ = ["number_along"]


def number_along(builder: NodeBuilder, index: ir.Value, dims: Sequence[int], along: Sequence[int]) -> ir.Value:
    """The number that every row of ``index`` [M] has among the positions along some of the dims [M]."""
    if len(along) == len(dims):
        return index
    total: ir.Value | None = None
    for place, dim in enumerate(along):
        part = _applied(builder, "Div", index, math.prod(dims[dim + 1 :]))
        part = _applied(builder, "Mod", part, dims[dim]) if dim else part
        part = _applied(builder, "Mul", part, math.prod(dims[other] for other in along[place + 1 :]))
        total = part if total is None else builder.op("Add", [total, part])
    assert total is not None
    return total


def _applied(builder: NodeBuilder, op_type: str, index: ir.Value, number: int) -> ir.Value:
    if number == 1:
        return index
    return builder.op(op_type, [index, builder.constant(np.array(number, dtype=np.int64))])
