"""Faults of torch's ONNX exporter, put right in the graph before it is optimised or written."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

__all__ = ["fix_export"]


def fix_export(model: ir.Model) -> int:
    """Puts known faults right, in place; returns how many there were."""
    return _keep_long_axes(model.graph)


def _keep_long_axes(graph: ir.Graph) -> int:
    """Takes from every Squeeze the axes that are not of size one.

    torch leaves such axes alone, ONNX refuses them: PixArt squeezes its token axis, whose size is one in training only.
    """
    fixed = 0
    for node in list(graph):
        if node.op_type != "Squeeze" or len(node.inputs) < 2 or node.inputs[0] is None or node.inputs[1] is None:
            continue
        axes, shape = ir.convenience.get_const_tensor(node.inputs[1]), node.inputs[0].shape
        if axes is None or shape is None:
            continue
        wanted = [int(axis) for axis in axes.numpy().reshape(-1)]
        kept = [axis for axis in wanted if not isinstance(shape[axis], int) or shape[axis] == 1]
        if len(kept) < len(wanted):
            _squeeze_only(graph, node, kept)
            fixed += 1
    return fixed


def _squeeze_only(graph: ir.Graph, node: ir.Node, axes: list[int]) -> None:
    source, output = node.inputs[0], node.outputs[0]
    name = f"{node.name}_kept"
    if axes:
        value = ir.Value(name=f"{name}_axes", const_value=ir.Tensor(np.array(axes, dtype=np.int64)))
        graph.register_initializer(value)
        node.replace_input_with(1, value)
        return
    same = ir.Node("", "Identity", [source], name=name)
    same.outputs[0].name, same.outputs[0].type, same.outputs[0].shape = name, output.type, output.shape
    graph.insert_after(node, same)
    ir.convenience.replace_all_uses_with(output, same.outputs[0], replace_graph_outputs=True)
    graph.remove(node, safe=True)
