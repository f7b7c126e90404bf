"""Convolution: the neighbours of every active row times the kernel as one matrix."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import onnx_ir as ir

from retouch.export.lattice import Fact, Grid
from retouch.export.model_shapes import attribute, dtype_of, shape_of
from retouch.export.rules._neighbourhood import (
    Window,
    channels_last,
    convolved_rows,
    local_rows,
    window_neighbourhood,
)
from retouch.export.rules._rule import RETOUCH_DOMAIN, rule

if TYPE_CHECKING:
    from retouch.export.analysis import Facts
    from retouch.export.emit import EditGraph

__all__ = ["Conv"]


@rule("Conv")
class Conv:
    """Any kernel, stride, dilation, pad and group count over all axes of the grid."""

    def transfer(self, node: ir.Node, facts: Facts) -> list[Fact] | str:
        """Rows of the grid of the result's resolution."""
        return convolved_rows(node, facts)

    def emit(self, node: ir.Node, graph: EditGraph) -> None:
        """One operator that reads neighbours where they are; products by group where there are no others to read."""
        output = node.outputs[0]
        groups = int(attribute(node, "group", 1))
        if groups == 1:
            result = self._dense(node, graph)
        elif _window(node).trivial:
            result = self._grouped_rows(node, graph, groups)
        elif groups == shape_of(output)[1] == shape_of(node.inputs[0])[1]:
            result = self._depthwise(node, graph)
        else:
            result = self._grouped(node, graph, groups)
        graph.set_rows(output, result, channels_last(output))

    def _dense(self, node: ir.Node, graph: EditGraph) -> ir.Value:
        output, dtype = node.outputs[0], dtype_of(node.outputs[0])
        batch, channels = shape_of(output)[:2]
        weight, bias, form = _kernel_matrix(node, graph), _bias(node, graph), graph.ints([-1, batch, channels])
        if _window(node).trivial:
            rows = _columns(node, graph)
            if batch == 1:
                return graph.op("Gemm", [rows, weight, bias] if bias else [rows, weight], {"transB": 1})
            operands = [rows, weight, bias, form]
            return graph.op("BatchRowLinear", operands, {"transB": 1}, domain=RETOUCH_DOMAIN, dtype=dtype)
        operands = [*_neighbours(node, graph), weight]
        if batch == 1:
            operands += [bias] if bias is not None else []
            return graph.op("EditConv", operands, domain=RETOUCH_DOMAIN, dtype=dtype)
        return graph.op("BatchEditConv", [*operands, bias, form], domain=RETOUCH_DOMAIN, dtype=dtype)

    def _depthwise(self, node: ir.Node, graph: EditGraph) -> ir.Value:
        output = node.outputs[0]
        batch, channels = shape_of(output)[:2]
        taps = math.prod(shape_of(node.inputs[1])[2:])
        weight = graph.op("Reshape", [graph.whole(node.inputs[1]), graph.ints([channels, taps])])
        weight = graph.op("Transpose", [weight], {"perm": [1, 0]})
        if batch != 1:
            weight = graph.op("Unsqueeze", [weight, graph.ints([1])])
        bias = _bias(node, graph)
        if bias is None:
            bias = graph.constant(np.zeros(channels, dtype_of(output).numpy()))
        name = "DepthwiseEditConv" if batch == 1 else "BatchDepthwiseEditConv"
        operands = [*_neighbours(node, graph), weight, bias]
        return graph.op(name, operands, domain=RETOUCH_DOMAIN, dtype=dtype_of(output))

    def _grouped(self, node: ir.Node, graph: EditGraph, groups: int) -> ir.Value:
        output, dtype = node.outputs[0], dtype_of(node.outputs[0])
        batch, channels = shape_of(output)[:2]
        bias = _bias(node, graph)
        if bias is None:
            bias = graph.constant(np.zeros(channels, dtype.numpy()))
        operands = [*_neighbours(node, graph), _kernel_matrix(node, graph), bias]
        if batch == 1:
            return graph.op("GroupedEditConv", operands, {"groups": groups}, domain=RETOUCH_DOMAIN, dtype=dtype)
        operands.append(graph.ints([-1, batch, channels]))
        return graph.op("BatchGroupedEditConv", operands, {"groups": groups}, domain=RETOUCH_DOMAIN, dtype=dtype)

    def _grouped_rows(self, node: ir.Node, graph: EditGraph, groups: int) -> ir.Value:
        kernel = shape_of(node.inputs[1])
        batch = shape_of(node.outputs[0])[0]
        depth, width = kernel[1], kernel[0] // groups
        columns = graph.op("Reshape", [_columns(node, graph), graph.ints([-1, groups, depth])])
        columns = graph.op("Transpose", [columns], {"perm": [1, 0, 2]})
        weight = graph.op("Reshape", [graph.whole(node.inputs[1]), graph.ints([groups, width, depth])])
        weight = graph.op("Transpose", [weight], {"perm": [0, 2, 1]})
        result = graph.op("Transpose", [graph.op("MatMul", [columns, weight])], {"perm": [1, 0, 2]})
        shape = [-1, groups * width] if batch == 1 else [-1, batch, groups * width]
        result = graph.op("Reshape", [result, graph.ints(shape)])
        bias = _bias(node, graph)
        return graph.op("Add", [result, bias]) if bias is not None else result


def _window(node: ir.Node) -> Window:
    return Window(node, shape_of(node.inputs[1])[2:])


def _grid(graph: EditGraph, value: ir.Value) -> Grid:
    rows = graph.facts.rows(value)
    assert rows is not None
    return rows.grid


def _neighbours(node: ir.Node, graph: EditGraph) -> list[ir.Value | None]:
    """What a window reads from, and which of it every active row reads."""
    source = node.inputs[0]
    assert source is not None
    spec = window_neighbourhood(_window(node), _grid(graph, source), _grid(graph, node.outputs[0]))
    return [*local_rows(graph, source, channels_last(source), spec, 0.0), graph.neighbours(spec)]


def _columns(node: ir.Node, graph: EditGraph) -> ir.Value:
    """The active rows that a window reads which reads no others, [M, (batch,) C]."""
    source = node.inputs[0]
    assert source is not None
    return graph.rows_in(source, channels_last(source))


def _kernel_matrix(node: ir.Node, graph: EditGraph) -> ir.Value:
    """The kernel as [C_out, T * C_in]; the runtime folds this at load, so the layout is never stored."""
    shape = shape_of(node.inputs[1])
    kernel = graph.whole(node.inputs[1])
    if math.prod(shape[2:]) > 1:
        kernel = graph.op("Transpose", [kernel], {"perm": [0, *range(2, len(shape)), 1]})
    return graph.op("Reshape", [kernel, graph.ints([shape[0], math.prod(shape[1:])])])


def _bias(node: ir.Node, graph: EditGraph) -> ir.Value | None:
    return graph.whole(node.inputs[2]) if len(node.inputs) > 2 else None
