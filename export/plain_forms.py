"""Roundabout forms of transposes and look-ups, as exporters write them, in the form that rules know.

Reshape [.., N, D] -> [K, N, D], Transpose [0, 2, 1], Reshape [.., D, N]    the two last axes exchanged
GatherND with constant indices of one axis                                  Gather

Only the analysis reads the result.
"""

from __future__ import annotations

import onnx_ir as ir
from onnx_ir.passes import common as passes

from retouch.export.model_shapes import attribute, constant, constant_value, shape_of

__all__ = ["spell_plainly"]


def spell_plainly(model: ir.Model) -> int:
    """Rewrites a model in place; returns the number of nodes that were replaced.

    Requires: static shapes.
    Ensures: names of values that existed before and are still computed are unchanged.
    """
    found = 0
    for node in list(model.graph):
        made = _exchanged(node) if node.op_type == "Reshape" else _gathered(node, model.graph)
        if made is not None:
            ir.convenience.replace_nodes_and_values(model.graph, node, [node], [made], node.outputs, made.outputs)
            found += 1
    passes.RemoveUnusedNodesPass()(model)
    return found


def _exchanged(last: ir.Node) -> ir.Node | None:
    turn = last.inputs[0].producer() if last.inputs[0] is not None else None
    if turn is None or turn.op_type != "Transpose" or attribute(turn, "perm") != (0, 2, 1):
        return None
    first = turn.inputs[0].producer() if turn.inputs[0] is not None else None
    if first is None or first.op_type != "Reshape":
        return None
    before, flat, after = shape_of(first.inputs[0]), shape_of(first.outputs[0]), shape_of(last.outputs[0])
    if flat[-2:] != before[-2:] or after != (*before[:-2], before[-1], before[-2]):
        return None
    rank = len(before)
    perm = ir.AttrInt64s("perm", [*range(rank - 2), rank - 1, rank - 2])
    return ir.Node("", "Transpose", [first.inputs[0]], [perm], name=f"{last.name}_exchanged")


def _gathered(node: ir.Node, graph: ir.Graph) -> ir.Node | None:
    indices = constant(node.inputs[1]) if node.op_type == "GatherND" else None
    axis = int(attribute(node, "batch_dims", 0))
    if indices is None or indices.shape[-1] != 1 or (axis and (indices != indices[(slice(0, 1),) * axis]).any()):
        return None
    picked = constant_value(f"{node.name}_positions", indices[(0,) * axis][..., 0])
    graph.register_initializer(picked)
    return ir.Node("", "Gather", [node.inputs[0], picked], [ir.AttrInt64("axis", axis)], name=f"{node.name}_plain")
