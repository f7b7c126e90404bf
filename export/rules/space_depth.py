"""DepthToSpace and SpaceToDepth: every row becomes several finer ones, or several rows become one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import onnx_ir as ir

from retouch.export.lattice import Fact, Grid, Rows
from retouch.export.model_shapes import attribute, shape_of
from retouch.export.rules._neighbourhood import (
    channels_last,
    gather_rows,
    grouping_neighbourhood,
    local_rows,
    spatial_rows,
    splitting_neighbourhood,
)
from retouch.export.rules._rule import rule

if TYPE_CHECKING:
    from retouch.export.analysis import Facts
    from retouch.export.emit import EditGraph

__all__ = ["DepthToSpace", "SpaceToDepth"]


class _Rearranged:
    def transfer(self, node: ir.Node, facts: Facts) -> list[Fact] | str:
        """Rows of the grid of the result's resolution."""
        rows = spatial_rows(node, facts)
        return rows if isinstance(rows, str) else [Rows(facts.grids.get(shape_of(node.outputs[0])[2:]), rows.axes)]


@rule("DepthToSpace")
class DepthToSpace(_Rearranged):
    """Modes DCR and CRD; PixelShuffle is the latter."""

    def emit(self, node: ir.Node, graph: EditGraph) -> None:
        """Local rows cut into their finer rows, then one gathered finer row per row."""
        source, output = node.inputs[0], node.outputs[0]
        assert source is not None
        size, layout = _block(node), channels_last(source)
        spec = splitting_neighbourhood((size, size), _grid(graph, source), _grid(graph, output))
        rows, cached, halo, pad = local_rows(graph, source, layout, spec, 0.0)
        local = graph.op("Concat", [rows, graph.op("Gather", [cached, halo], {"axis": 0}), pad], {"axis": 0})
        batch, width = shape_of(output)[:2]
        if attribute(node, "mode", "DCR") == "CRD":
            local = graph.op("Reshape", [local, graph.ints([-1, batch, width, size * size])])
            local = graph.op("Transpose", [local], {"perm": [0, 3, 1, 2]})
        else:
            local = graph.op("Reshape", [local, graph.ints([-1, batch, size * size, width])])
            local = graph.op("Transpose", [local], {"perm": [0, 2, 1, 3]})
        local = graph.op("Reshape", [local, graph.ints([-1, width] if batch == 1 else [-1, batch, width])])
        chosen = graph.op("Gather", [local, graph.neighbours(spec)], {"axis": 0})
        graph.set_rows(output, graph.op("Squeeze", [chosen, graph.ints([1])]), channels_last(output))


@rule("SpaceToDepth")
class SpaceToDepth(_Rearranged):
    """The finer rows of every row, one behind the other."""

    def emit(self, node: ir.Node, graph: EditGraph) -> None:
        """The gathered finer rows, their channels joined."""
        source, output = node.inputs[0], node.outputs[0]
        assert source is not None
        size = _block(node)
        spec = grouping_neighbourhood((size, size), _grid(graph, source), _grid(graph, output))
        columns = gather_rows(graph, source, spec)
        batch, width = shape_of(output)[:2]
        layout = channels_last(output)
        if len(layout) > 2:
            columns = graph.op("Transpose", [columns], {"perm": [0, 2, 1, 3]})
        sizes = [-1, width] if len(layout) == 2 else [-1, batch, width]
        graph.set_rows(output, graph.op("Reshape", [columns, graph.ints(sizes)]), layout)


def _block(node: ir.Node) -> int:
    return int(attribute(node, "blocksize"))


def _grid(graph: EditGraph, value: ir.Value) -> Grid:
    rows = graph.facts.rows(value)
    assert rows is not None
    return rows.grid
