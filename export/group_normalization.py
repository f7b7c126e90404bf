"""GroupNormalization in older operators: ONNX infers no shape for it, and nothing behind it would have one.

GroupNormalization(x)  ->  Reshape [B, G, -1] -> InstanceNormalization -> (scale and bias per channel) -> Reshape

Opset 18 gives scale and bias per group, which InstanceNormalization takes itself; opset 21 gives them per channel.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from retouch.export.model_shapes import attribute, constant_value

__all__ = ["split_group_normalization"]

_PER_CHANNEL_SINCE = 21


def split_group_normalization(model: ir.Model) -> int:
    """Rewrites the GroupNormalization nodes of a model in place; returns how many.

    A node whose scale has no known size or whose input has no known element type is left as it is.
    """
    per_channel = (model.opset_imports.get("") or 0) >= _PER_CHANNEL_SINCE
    nodes = [node for node in model.graph if node.op_type == "GroupNormalization" and node.domain in ("", "ai.onnx")]
    return sum(_split(model.graph, node, per_channel=per_channel) for node in nodes)


def _split(graph: ir.Graph, node: ir.Node, *, per_channel: bool) -> bool:
    source, scale, bias = node.inputs
    assert source is not None and scale is not None and bias is not None
    dtype = next((value.dtype for value in (scale, bias, source) if value.dtype is not None), None)
    size = scale.shape[0] if scale.shape is not None and len(scale.shape) == 1 else None
    if dtype is None or not isinstance(size, int):
        return False
    built = _Builder(graph, node)
    groups = int(attribute(node, "num_groups"))
    grouped = built.add("Reshape", [source, built.ints([0, groups, -1])])
    ones, zeros = (built.constant(np.full(groups, value, dtype.numpy())) for value in (1, 0))
    affine = [ones, zeros] if per_channel else [scale, bias]
    epsilon = {"epsilon": float(attribute(node, "epsilon", 1e-5))}
    result = built.add("InstanceNormalization", [grouped, *affine], epsilon)
    if per_channel:
        result = built.add("Reshape", [result, built.ints([0, size, -1])])
        column = built.ints([-1, 1])
        result = built.add("Mul", [result, built.add("Reshape", [scale, column])])
        result = built.add("Add", [result, built.add("Reshape", [bias, column])])
    shape = built.add("Shape", [source])
    built.finish(built.add("Reshape", [result, shape]))
    return True


class _Builder:
    """Adds nodes in front of a node and lets the last of them stand for it."""

    def __init__(self, graph: ir.Graph, node: ir.Node) -> None:
        self.graph, self.node = graph, node
        self.count = 0

    def add(self, op_type: str, inputs: Sequence[ir.Value], attributes: dict[str, float] | None = None) -> ir.Value:
        made = ir.Node("", op_type, inputs, ir.convenience.convert_attributes(attributes or {}), name=self._name())
        made.outputs[0].name = f"{made.name}_out"
        self.graph.insert_before(self.node, made)
        return made.outputs[0]

    def ints(self, values: Sequence[int]) -> ir.Value:
        return self.constant(np.array(values, dtype=np.int64))

    def constant(self, array: np.ndarray) -> ir.Value:
        value = constant_value(self._name(), array)
        self.graph.register_initializer(value)
        return value

    def finish(self, result: ir.Value) -> None:
        output = self.node.outputs[0]
        name, kind = output.name, output.type
        output.replace_all_uses_with(result, replace_graph_outputs=True)
        self.graph.remove(self.node, safe=True)
        result.name, result.type = name, kind

    def _name(self) -> str:
        self.count += 1
        return f"{self.node.name or self.node.outputs[0].name}_split_{self.count}"
