"""Transposed convolution: the products of the read rows with every tap, gathered and summed per result row."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import onnx_ir as ir

from retouch.export.lattice import Fact
from retouch.export.model_shapes import attribute, shape_of
from retouch.export.rules._neighbourhood import (
    Window,
    channels_last,
    convolved_rows,
    local_rows,
    transposed_neighbourhood,
)
from retouch.export.rules._rule import rule

if TYPE_CHECKING:
    from retouch.export.analysis import Facts
    from retouch.export.emit import EditGraph

__all__ = ["ConvTranspose"]


@rule("ConvTranspose")
class ConvTranspose:
    """Any kernel, stride, pads and group count; costs what the dense operator costs per row."""

    def transfer(self, node: ir.Node, facts: Facts) -> list[Fact] | str:
        """Rows of the grid of the result's resolution."""
        return convolved_rows(node, facts)

    def emit(self, node: ir.Node, graph: EditGraph) -> None:
        """Local rows times the kernel, then a gather over (row, tap) and a sum."""
        source, output = node.inputs[0], node.outputs[0]
        assert source is not None
        before, after = graph.facts.rows(source), graph.facts.rows(output)
        assert before is not None and after is not None
        spec = transposed_neighbourhood(Window(node, shape_of(node.inputs[1])[2:]), before.grid, after.grid)
        rows, cached, halo, pad = local_rows(graph, source, channels_last(source), spec, 0.0)
        local = graph.op("Concat", [rows, graph.op("Gather", [cached, halo], {"axis": 0}), pad], {"axis": 0})
        chosen = graph.op("Gather", [_products(node, local, graph), graph.neighbours(spec)], {"axis": 0})
        result = graph.op("ReduceSum", [chosen, graph.ints([1])], {"keepdims": 0})
        batch, width = shape_of(output)[:2]
        if batch > 1:
            result = graph.op("Reshape", [result, graph.ints([-1, batch, width])])
        if len(node.inputs) > 2 and node.inputs[2] is not None:
            result = graph.op("Add", [result, graph.whole(node.inputs[2])])
        graph.set_rows(output, result, channels_last(output))


def _products(node: ir.Node, local: ir.Value, graph: EditGraph) -> ir.Value:
    """The products of the local rows [L, (batch,) C] with every tap, [L T, batch C_out]."""
    batch, groups = shape_of(node.inputs[0])[0], int(attribute(node, "group", 1))
    kernel = shape_of(node.inputs[1])
    depth, width, taps = kernel[0] // groups, kernel[1], math.prod(kernel[2:])
    weight = graph.op("Reshape", [graph.whole(node.inputs[1]), graph.ints([groups, depth, width, taps])])
    weight = graph.op("Transpose", [weight], {"perm": [0, 1, 3, 2]})
    if groups == 1:
        weight = graph.op("Reshape", [weight, graph.ints([depth, taps * width])])
        rows = graph.op("Reshape", [local, graph.ints([-1, depth])]) if batch > 1 else local
        products = graph.op("Gemm", [rows, weight])
        if batch == 1:
            return graph.op("Reshape", [products, graph.ints([-1, width])])
    else:
        weight = graph.op("Reshape", [weight, graph.ints([groups, depth, taps * width])])
        rows = graph.op("Reshape", [local, graph.ints([-1, groups, depth])])
        products = graph.op("MatMul", [graph.op("Transpose", [rows], {"perm": [1, 0, 2]}), weight])
    products = graph.op("Reshape", [products, graph.ints([groups, -1, batch, taps, width])])
    products = graph.op("Transpose", [products], {"perm": [1, 3, 2, 0, 4]})
    return graph.op("Reshape", [products, graph.ints([-1, batch * groups * width])])
