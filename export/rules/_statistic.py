"""Statistics: values reduced over all rows of a grid, brought up to date from the active rows alone.

Under frozen context a sum over all rows changes by what the active rows contribute now minus what they contributed in
the base run. The base run's value is kept as the model itself computed it, so that an edit inherits its rounding:
float32 means over 256 x 256 positions are off by up to 6e-6 of the mean, which a kept sum in double would expose.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import onnx_ir as ir

from retouch.export.layout import Layout, default_layout
from retouch.export.model_shapes import dtype_of, shape_of

if TYPE_CHECKING:
    from retouch.export.emit import EditGraph

__all__ = ["base_rows", "held", "in_float32", "set_moved"]


def held(node: ir.Node, graph: EditGraph) -> bool:
    """Whether the result is left as the base run computed it, which is then recorded."""
    output = node.outputs[0]
    if graph.corrected_moments or output not in graph.facts.held:
        return False
    graph.set_whole(output, graph.cached_whole(output))
    return True


def base_rows(value: ir.Value, layout: Layout, graph: EditGraph) -> ir.Value:
    """The active rows of a value as the base run computed them, in a layout."""
    rows = graph.facts.rows(value)
    assert rows is not None
    stored = default_layout(shape_of(value), rows)
    tensor = graph.op("Gather", [graph.cached(value, stored), graph.row_index(rows.grid)], {"axis": 0})
    return graph.fit(tensor, stored, layout)


def in_float32(tensor: ir.Value, value: ir.Value, graph: EditGraph) -> ir.Value:
    """A tensor with the element type of a value, in single precision at least."""
    if dtype_of(value) in (ir.DataType.FLOAT, ir.DataType.DOUBLE):
        return tensor
    return graph.op("Cast", [tensor], {"to": int(ir.DataType.FLOAT)})


def set_moved(node: ir.Node, change: ir.Value, graph: EditGraph) -> None:
    """Records the result of a node as the base run's plus a change of the same shape, for commits too."""
    graph.totalled(node)
    output = node.outputs[0]
    moved = graph.op("Add", [in_float32(graph.cached_whole(output), output, graph), change])
    if dtype_of(output) not in (ir.DataType.FLOAT, ir.DataType.DOUBLE):
        moved = graph.op("Cast", [moved], {"to": int(dtype_of(output))})
    graph.updates.setdefault(graph.whole_id(output), moved)
    graph.set_whole(output, moved)
