"""Canonical GroupNorm: every exported form of it becomes one ``ai.retouch.GroupNorm`` node and an affine map.

Reshape [B, G, -1] -> InstanceNormalization -> Reshape      (torch.onnx)
InstanceNormalization                                       (one group per channel)
GroupNormalization                                          (opset 18: affine per group; 21: per channel)
"""

from __future__ import annotations

import math

import numpy as np
import onnx_ir as ir
from onnx_ir.passes import common as passes

from retouch.export.model_shapes import attribute, constant, constant_value, dtype_of, shape_of
from retouch.export.rules._rule import RETOUCH_DOMAIN

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
        elif node.op_type == "GroupNormalization":
            found += _group_normalization(model.graph, node, model.opset_imports.get("", 18))
    passes.RemoveUnusedNodesPass()(model)
    return found


def _instance_norm(graph: ir.Graph, node: ir.Node) -> bool:
    source, output = node.inputs[0], node.outputs[0]
    assert source is not None
    scale, bias = constant(node.inputs[1]), constant(node.inputs[2])
    if scale is None or bias is None:
        return False
    viewed = _viewed_source(source)
    consumers = [usage for usage, _ in output.uses()]
    if viewed is not None and not output.is_graph_output() and all(user.op_type == "Reshape" for user in consumers):
        channels = shape_of(viewed)[1]
        repeat = channels // shape_of(source)[1]
        norm = _Norm(graph, node, viewed, shape_of(source)[1])
        result = norm.affine(np.repeat(scale, repeat), np.repeat(bias, repeat))
        for user in consumers:
            norm.reshape_like(result, user.outputs[0])
        return True
    if len(shape_of(source)) < 3:
        return False
    norm = _Norm(graph, node, source, shape_of(source)[1])
    norm.replace(output, norm.affine(scale, bias))
    return True


def _viewed_source(value: ir.Value) -> ir.Value | None:
    """The value [B, C, ...] that a reshape to [B, G, ...] views, if its groups are runs of channels."""
    producer = value.producer()
    if producer is None or producer.op_type != "Reshape" or producer.inputs[0] is None:
        return None
    before, after = shape_of(producer.inputs[0]), shape_of(value)
    if len(before) < 3 or before[0] != after[0] or before[1] % after[1]:
        return None
    return producer.inputs[0]


def _group_normalization(graph: ir.Graph, node: ir.Node, opset: int) -> bool:
    source, output = node.inputs[0], node.outputs[0]
    assert source is not None
    scale, bias = constant(node.inputs[1]), constant(node.inputs[2])
    if scale is None or bias is None:
        return False
    groups, channels = int(attribute(node, "num_groups")), shape_of(source)[1]
    if opset < 21:
        scale, bias = (np.repeat(part, channels // groups) for part in (scale, bias))
    norm = _Norm(graph, node, source, groups)
    norm.replace(output, norm.affine(scale, bias))
    return True


class _Norm:
    """Builds the canonical nodes that stand for one node of the graph."""

    def __init__(self, graph: ir.Graph, node: ir.Node, source: ir.Value, groups: int) -> None:
        self.graph, self.node, self.source = graph, node, source
        self.groups = groups
        self.count = 0

    def affine(self, scale: np.ndarray, bias: np.ndarray) -> ir.Value:
        """The normalised source times scale plus bias, trivial factors left out."""
        epsilon = float(attribute(self.node, "epsilon", 1e-5))
        attributes = ir.convenience.convert_attributes({"num_groups": self.groups, "epsilon": epsilon})
        result = self._add("GroupNorm", [self.source], attributes, RETOUCH_DOMAIN)
        shape = (scale.size, *(1,) * (len(shape_of(self.source)) - 2))
        if not np.all(scale == 1):
            result = self._add("Mul", [result, self._constant(scale.reshape(shape))])
        if not np.all(bias == 0):
            result = self._add("Add", [result, self._constant(bias.reshape(shape))])
        return result

    def reshape_like(self, result: ir.Value, output: ir.Value) -> None:
        """Lets a value of the graph be a reshape of the result."""
        wanted = shape_of(output)
        if math.prod(wanted) == math.prod(shape_of(result)) and wanted != shape_of(result):
            result = self._add("Reshape", [result, self._constant(np.array(wanted, np.int64))], shape=wanted)
        self.replace(output, result)

    def replace(self, output: ir.Value, result: ir.Value) -> None:
        """Lets a result stand for a value of the graph, under the value's name."""
        name = output.name
        producer = output.producer()
        output.name = f"{name}_replaced"
        result.name = name if result.producer() is not None and not result.is_graph_output() else result.name
        output.replace_all_uses_with(result, replace_graph_outputs=True)
        if producer is not None and producer is not self.node and producer.graph is not None:
            self.graph.remove(producer, safe=True)

    def _add(
        self,
        op_type: str,
        inputs: list[ir.Value],
        attributes: list[ir.Attr] | None = None,
        domain: str = "",
        shape: tuple[int, ...] | None = None,
    ) -> ir.Value:
        self.count += 1
        name = f"{self.node.name}_canonical_{self.count}"
        made = ir.Node(domain, op_type, inputs, attributes or [], name=name)
        value = made.outputs[0]
        value.name = f"{name}_out"
        value.shape = ir.Shape(shape if shape is not None else shape_of(self.source))
        value.type = ir.TensorType(dtype_of(self.source))
        self.graph.insert_before(self.node, made)
        return value

    def _constant(self, array: np.ndarray) -> ir.Value:
        self.count += 1
        value = constant_value(f"{self.node.name}_constant_{self.count}", array)
        self.graph.register_initializer(value)
        return value
