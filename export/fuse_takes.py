"""Parts of one value joined again become one Gather: rolled positions, repeated edges, swapped halves; or that value.

Slice, Split, Expand, Tile and Gather along an axis, joined by Concat along that axis. Only the analysis reads it.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
from onnx_ir.passes import common as passes

from retouch.export.model_shapes import attribute, constant, constant_value, normal_axis, shape_of
from retouch.export.slice_bounds import slice_positions

__all__ = ["fuse_takes"]

_Reads = tuple[ir.Value, list[int]]
"""A value, and the position along an axis of it that each position reads."""


def fuse_takes(model: ir.Model) -> int:
    """Rewrites a model in place; returns the number of nodes that were fused.

    Requires: static shapes.
    Ensures: names of values that existed before and are still computed are unchanged.
    """
    found = 0
    for node in list(model.graph):
        if node.op_type == "Concat":
            axis = normal_axis(int(attribute(node, "axis", 0)), len(shape_of(node.outputs[0])))
            reads = _reads(node.outputs[0], axis)
            if reads[0] is not node.outputs[0] and any(value is not reads[0] for value in node.inputs):
                _replace(model.graph, node, reads, axis, found)
                found += 1
    passes.RemoveUnusedNodesPass()(model)
    return found


def _reads(value: ir.Value, axis: int) -> _Reads:
    node = value.producer()
    parts = None if node is None else _parts(node, value, axis)
    return (value, list(range(shape_of(value)[axis]))) if parts is None else parts


def _parts(node: ir.Node, value: ir.Value, axis: int) -> _Reads | None:
    """What a node's output reads, ``None`` if it is not made of positions of one value along the axis."""
    if node.op_type == "Concat":
        return _joined(node, axis)
    source = node.inputs[0] if node.inputs else None
    positions = _positions(node, value, axis)
    if source is None or positions is None:
        return None
    root, own = _reads(source, axis)
    return root, [own[position] for position in positions]


def _joined(node: ir.Node, axis: int) -> _Reads | None:
    if normal_axis(int(attribute(node, "axis", 0)), len(shape_of(node.outputs[0]))) != axis:
        return None
    parts = [_reads(value, axis) for value in node.inputs if value is not None]
    if len({id(root) for root, _ in parts}) != 1:
        return None
    return parts[0][0], [position for _, positions in parts for position in positions]


def _positions(node: ir.Node, value: ir.Value, axis: int) -> list[int] | None:
    """The position of its first operand that each position of an output reads, if no other axis changes."""
    before, after = shape_of(node.inputs[0]), shape_of(value)
    if len(before) != len(after) or any(
        a != b for other, (a, b) in enumerate(zip(before, after, strict=True)) if other != axis
    ):
        return None
    every = list(range(before[axis]))
    match node.op_type:
        case "Identity":
            return every
        case "Slice":
            bounds = slice_positions(node)
            return None if bounds is None or any(other != axis for other in bounds) else bounds.get(axis, every)
        case "Split":
            first = sum(shape_of(part)[axis] for part in node.outputs[: node.outputs.index(value)])
            return every[first : first + after[axis]]
        case "Expand":
            return every * after[axis] if len(every) == 1 else None
        case "Tile":
            return every * (after[axis] // len(every))
        case "Gather":
            indices = constant(node.inputs[1])
            along = normal_axis(int(attribute(node, "axis", 0)), len(before)) == axis
            return None if indices is None or not along else [every[int(index)] for index in indices.reshape(-1)]
    return None


def _replace(graph: ir.Graph, node: ir.Node, reads: _Reads, axis: int, number: int) -> None:
    root, positions = reads
    if positions == list(range(shape_of(root)[axis])):
        # Taken apart and joined as it was: blocks of FLUX hand text and image tokens to one another like that.
        made = ir.Node("", "Identity", [root], name=f"{node.name}_whole")
        ir.convenience.replace_nodes_and_values(graph, node, [node], [made], node.outputs, made.outputs)
        return
    indices = constant_value(f"fused_take_{number}", np.array(positions, np.int64))
    graph.register_initializer(indices)
    made = ir.Node("", "Gather", [root, indices], [ir.AttrInt64("axis", axis)], name=f"{node.name}_take")
    ir.convenience.replace_nodes_and_values(graph, node, [node], [made], node.outputs, made.outputs)
