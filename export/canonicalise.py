"""Canonical GroupNorm: every exported form of it becomes one ``ai.retouch.GroupNorm`` node and an affine map.

Reshape [B, G, -1] -> InstanceNormalization -> Reshape                (torch.onnx; clean-up's GroupNormalization)
InstanceNormalization                                                 (one group per channel)
Reshape [B, G, ...] -> (v - mean(v)) / sqrt(var(v) + e) -> Reshape    (written out by hand)
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
from onnx_ir.passes import common as passes

from retouch.export.decomposed_norm import NormPattern, match_norm
from retouch.export.model_shapes import attribute, constant, shape_of
from retouch.export.norm_builder import NormBuilder, grouped_source

__all__ = ["canonicalise"]


def canonicalise(model: ir.Model) -> int:
    """Rewrites a model in place; returns the number of norms found.

    Requires: static shapes.
    Ensures: names of values that existed before and are still computed are unchanged.
    """
    found = 0
    for node in list(model.graph):
        if node.op_type == "InstanceNormalization":
            found += _instance_norm(model.graph, node)
        elif (pattern := match_norm(node)) is not None:
            found += _decomposed(model.graph, node, pattern)
    passes.RemoveUnusedNodesPass()(model)
    return found


def _instance_norm(graph: ir.Graph, node: ir.Node) -> bool:
    source, output = node.inputs[0], node.outputs[0]
    assert source is not None
    scale, bias = constant(node.inputs[1]), constant(node.inputs[2])
    if scale is None or bias is None:
        return False
    epsilon = float(attribute(node, "epsilon", 1e-5))
    viewed = grouped_source(source)
    if viewed is not None and _is_reshaped_only(output):
        channels = shape_of(viewed)[1]
        repeat = channels // shape_of(source)[1]
        norm = NormBuilder(graph, node, viewed, shape_of(source)[1], epsilon)
        result = norm.affine(np.repeat(scale, repeat), np.repeat(bias, repeat))
        _replace_reshaped(norm, result, output)
        return True
    if len(shape_of(source)) < 3:
        return False
    norm = NormBuilder(graph, node, source, shape_of(source)[1], epsilon)
    norm.replace(output, norm.affine(scale, bias))
    return True


def _decomposed(graph: ir.Graph, node: ir.Node, pattern: NormPattern) -> bool:
    viewed = grouped_source(pattern.value)
    groups = shape_of(pattern.value)[1]
    # As many groups as channels may as well be tokens, normalised over the channels behind them.
    if viewed is None or groups == shape_of(viewed)[1]:
        return False
    norm, output = NormBuilder(graph, node, viewed, groups, pattern.epsilon), node.outputs[0]
    result = norm.affine(np.ones(1), np.zeros(1))
    if _is_reshaped_only(output):
        _replace_reshaped(norm, result, output)
    else:
        norm.reshape_like(result, output)
    return True


def _is_reshaped_only(value: ir.Value) -> bool:
    return not value.is_graph_output() and all(user.op_type == "Reshape" for user, _ in value.uses())


def _replace_reshaped(norm: NormBuilder, result: ir.Value, output: ir.Value) -> None:
    for user in [usage for usage, _ in output.uses()]:
        norm.reshape_like(result, user.outputs[0])
