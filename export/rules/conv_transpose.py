"""Transposed convolution: the products of the read rows with every tap, gathered and summed per result row."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import onnx_ir as ir

from retouch.bundle import NeighbourhoodSpec
from retouch.export.lattice import Fact, Grid
from retouch.export.layout import GRID
from retouch.export.model_shapes import attribute, shape_of
from retouch.export.rules._neighbourhood import Window, convolved_rows, local_rows
from retouch.export.rules._rule import rule
from retouch.region import transposed_axis

if TYPE_CHECKING:
    from retouch.export.analysis import Facts
    from retouch.export.emit import EditGraph

__all__ = ["ConvTranspose"]


@rule("ConvTranspose")
class ConvTranspose:
    """One group and batch one; costs what the dense operator costs per row."""

    def transfer(self, node: ir.Node, facts: Facts) -> list[Fact] | str:
        """Rows of the grid of the result's resolution."""
        if int(attribute(node, "group", 1)) != 1 or shape_of(node.inputs[0])[0] != 1:
            return "it has groups or a batch"
        if attribute(node, "output_shape") is not None:
            return "output_shape is not supported; give explicit pads"
        return convolved_rows(node, facts)

    def emit(self, node: ir.Node, graph: EditGraph) -> None:
        """Local rows times the kernel, then a gather over (row, tap) and a sum."""
        source, output = node.inputs[0], node.outputs[0]
        assert source is not None
        kernel = shape_of(node.inputs[1])
        taps, width = math.prod(kernel[2:]), kernel[1]
        before, after = graph.facts.rows(source), graph.facts.rows(output)
        assert before is not None and after is not None
        spec = _neighbourhood(Window(node, kernel[2:]), before.grid, after.grid)
        rows, cached, halo, pad = local_rows(graph, source, (GRID, 1), spec, 0.0)
        local = graph.op("Concat", [rows, graph.op("Gather", [cached, halo], {"axis": 0}), pad], {"axis": 0})
        weight = graph.op("Transpose", [graph.whole(node.inputs[1])], {"perm": [0, *range(2, len(kernel)), 1]})
        weight = graph.op("Reshape", [weight, graph.ints([kernel[0], taps * width])])
        products = graph.op("Reshape", [graph.op("Gemm", [local, weight]), graph.ints([-1, width])])
        chosen = graph.op("Gather", [products, graph.neighbours(spec)], {"axis": 0})
        result = graph.op("ReduceSum", [chosen, graph.ints([1])], {"keepdims": 0})
        if len(node.inputs) > 2 and node.inputs[2] is not None:
            result = graph.op("Add", [result, graph.whole(node.inputs[2])])
        graph.set_rows(output, result, (GRID, 1))


def _neighbourhood(window: Window, source: Grid, target: Grid) -> NeighbourhoodSpec:
    parts = [
        transposed_axis(n_in, n_out, k, s, p, d)
        for n_in, n_out, k, s, p, d in zip(
            source.dims, target.dims, window.kernel, window.strides, window.begins, window.dilations, strict=True
        )
    ]
    name = "_".join("x".join(map(str, v)) for v in (window.kernel, window.strides, window.begins, window.dilations))
    return NeighbourhoodSpec(
        f"{source.id}_{target.id}_transposed{name}",
        source.id,
        target.id,
        tuple(tuple(map(tuple, sources)) for sources, _ in parts),
        tuple(tuple(map(tuple, taps)) for _, taps in parts),
        window.kernel,
    )
