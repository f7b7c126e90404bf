"""Walks over the nodes of a graph under construction and replaces some of them."""

from __future__ import annotations

import abc
from collections import Counter

import onnx_ir as ir

from retouch.export.node_builder import BindingTime, NodeBuilder

__all__ = ["Peephole"]


class Peephole(abc.ABC):
    """One simplification. A node is either kept or replaced by a value; nodes made meanwhile come before it."""

    def __init__(self, builder: NodeBuilder) -> None:
        self.builder = builder
        self.replaced: dict[ir.Value, ir.Value] = {}
        self.uses: Counter[ir.Value] = Counter()

    @abc.abstractmethod
    def rewrite(self, node: ir.Node) -> ir.Value | None:
        """The value that replaces the node's only output, ``None`` to keep the node."""

    def run(self, outputs: list[ir.Value]) -> list[ir.Value]:
        """Rewrites the builder's nodes in place; returns the values that stand for the outputs."""
        nodes = self.builder.restart()
        self.uses.update(value for node in nodes for value in node.inputs if value is not None)
        self.uses.update(outputs)
        for node in nodes:
            for index, value in enumerate(node.inputs):
                if value is not None and value in self.replaced:
                    node.replace_input_with(index, self.replaced[value])
            result = self.rewrite(node)
            if result is None:
                self.builder.nodes.append(node)
            else:
                self.replace(node.outputs[0], result)
        return [self.replaced.get(value, value) for value in outputs]

    def replace(self, value: ir.Value, result: ir.Value) -> None:
        """Lets a result stand for a value wherever the value is used from now on."""
        self.replaced[value] = result
        self.uses[result] += self.uses[value]

    def early(self, value: ir.Value | None) -> bool:
        """Whether a value is known before the edit."""
        return value is not None and self.builder.time[value] < BindingTime.EDIT

    def split_operands(self, node: ir.Node) -> tuple[ir.Value, ir.Value] | None:
        """The late and the early operand of a binary node that has one of each."""
        if len(node.inputs) != 2:
            return None
        a, b = node.inputs
        if a is None or b is None or self.early(a) == self.early(b):
            return None
        return (b, a) if self.early(a) else (a, b)
