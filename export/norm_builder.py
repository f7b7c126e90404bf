"""Builds the canonical form of a group norm in place of the nodes that computed it."""

from __future__ import annotations

import math

import numpy as np
import onnx_ir as ir

from retouch.export.model_shapes import constant_value, dtype_of, shape_of
from retouch.export.rules._rule import RETOUCH_DOMAIN

__all__ = ["NormBuilder", "grouped_source"]


def grouped_source(value: ir.Value) -> ir.Value | None:
    """The value [B, C, ...] that a reshape to [B, G, ...] views, if its groups are runs of channels."""
    producer = value.producer()
    if producer is None or producer.op_type != "Reshape" or producer.inputs[0] is None:
        return None
    before, after = shape_of(producer.inputs[0]), shape_of(value)
    if len(before) < 3 or before[0] != after[0] or before[1] % after[1]:
        return None
    return producer.inputs[0]


class NormBuilder:
    """Builds the canonical nodes that stand for one node of the graph.

    Args:
        graph: the graph.
        node: the node that computes the normalised value.
        source: what is normalised, [B, C, ...].
        groups: number of groups of channels.
        epsilon: what is added to the variance.
    """

    def __init__(self, graph: ir.Graph, node: ir.Node, source: ir.Value, groups: int, epsilon: float) -> None:
        self.graph, self.node, self.source = graph, node, source
        self.groups, self.epsilon = groups, epsilon
        self.count = 0

    def affine(self, scale: np.ndarray, bias: np.ndarray) -> ir.Value:
        """The normalised source times scale plus bias, trivial factors left out."""
        attributes = ir.convenience.convert_attributes({"num_groups": self.groups, "epsilon": self.epsilon})
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
