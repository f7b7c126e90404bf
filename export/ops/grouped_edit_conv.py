"""GroupedEditConv: a convolution of the active rows whose groups of channels are apart."""

from __future__ import annotations

from typing import Any

from onnxscript import opset18, script

from retouch.export.ops._domain import RETOUCH

__all__ = ["BatchGroupedEditConv", "GroupedEditConv"]

# Its annotations do not take constants as what they are.
op: Any = opset18


@script(RETOUCH, default_opset=op)
def GroupedEditConv(rows, cached, halo, pad, neighbours, weight, bias, groups: int):  # noqa: N802
    """What EditConv computes, every group of columns from its own group of channels: [M, C_out].

    ``weight`` is [C_out, T * C / groups].
    """
    table = op.Concat(rows, op.Gather(cached, halo, axis=0), pad, axis=0)
    size = op.Shape(weight, start=1)
    taps = op.Shape(neighbours, start=1)
    count = op.Reshape(op.Constant(value_int=groups), op.Constant(value_ints=[1]))
    any_number = op.Constant(value_ints=[-1])
    by_group = op.Concat(any_number, taps, count, op.Div(size, taps), axis=0)
    gathered = op.Transpose(op.Reshape(op.Gather(table, neighbours, axis=0), by_group), perm=[2, 0, 1, 3])
    columns = op.Reshape(gathered, op.Concat(count, any_number, size, axis=0))
    weights = op.Transpose(op.Reshape(weight, op.Concat(count, any_number, size, axis=0)), perm=[0, 2, 1])
    product = op.Transpose(op.MatMul(columns, weights), perm=[1, 0, 2])
    return op.Add(op.Reshape(product, op.Concat(any_number, op.Shape(weight, end=1), axis=0)), bias)


@script(RETOUCH, default_opset=op)
def BatchGroupedEditConv(rows, cached, halo, pad, neighbours, weight, bias, form, groups: int):  # noqa: N802
    """What GroupedEditConv computes, for every sample of a batch: [M, B, C_out]. ``form`` is [-1, B, C_out]."""
    table = op.Concat(rows, op.Gather(cached, halo, axis=0), pad, axis=0)
    size = op.Shape(weight, start=1)
    taps = op.Shape(neighbours, start=1)
    count = op.Reshape(op.Constant(value_int=groups), op.Constant(value_ints=[1]))
    any_number = op.Constant(value_ints=[-1])
    by_group = op.Concat(any_number, taps, count, op.Div(size, taps), axis=0)
    by_sample = op.Transpose(op.Gather(table, neighbours, axis=0), perm=[0, 2, 1, 3])
    gathered = op.Transpose(op.Reshape(by_sample, by_group), perm=[2, 0, 1, 3])
    columns = op.Reshape(gathered, op.Concat(count, any_number, size, axis=0))
    weights = op.Transpose(op.Reshape(weight, op.Concat(count, any_number, size, axis=0)), perm=[0, 2, 1])
    product = op.Transpose(op.MatMul(columns, weights), perm=[1, 0, 2])
    return op.Add(op.Reshape(product, form), bias)
