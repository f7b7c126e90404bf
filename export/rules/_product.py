"""Matrix products as sums over labelled axes: what MatMul, Gemm and two-operand Einsum have in common."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import onnx_ir as ir

from retouch.export.einsum import equation_of
from retouch.export.model_shapes import attribute, shape_of

__all__ = ["Operand", "Product", "contraction_of"]

Label = str | None


@dataclass(frozen=True)
class Operand:
    """An operand and the label of each of its axes; axes of size one have none."""

    value: ir.Value
    labels: tuple[Label, ...]

    def axes(self, wanted: list[str]) -> tuple[int, ...]:
        """The axes with those labels, in that order."""
        return tuple(self.labels.index(label) for label in wanted)


@dataclass(frozen=True)
class Product:
    """A sum of products over the labels that the result does not have."""

    left: Operand
    right: Operand
    result: tuple[Label, ...]

    def swapped(self) -> Product:
        """The same product with its operands exchanged."""
        return dataclasses.replace(self, left=self.right, right=self.left)

    def labels(self, *, left: bool, right: bool, result: bool) -> list[str]:
        """The labels that appear exactly where asked, in the order of the left operand, then the right."""
        seen = dict.fromkeys(label for label in (*self.left.labels, *self.right.labels) if label is not None)
        where = (self.left.labels, self.right.labels, self.result)
        wanted = (left, right, result)
        return [label for label in seen if tuple(label in part for part in where) == wanted]


def contraction_of(node: ir.Node) -> Product | str:
    """The node as a contraction, or why it is none."""
    if node.op_type == "Einsum":
        return _from_einsum(node)
    return _from_gemm(node) if node.op_type == "Gemm" else _from_matmul(node)


def _from_matmul(node: ir.Node) -> Product | str:
    a, b, c = (shape_of(value) for value in (*node.inputs, node.outputs[0]))
    if len(a) < 2 or len(b) < 2:
        return "an operand has fewer than two axes"
    rank = len(c)
    batch = [f"b{axis}" for axis in range(rank - 2)]
    left, right = ([*batch[rank - len(shape) :]] for shape in (a, b))
    return _product(node, [*left, "i", "k"], [*right, "k", "j"], [*batch, "i", "j"])


def _from_gemm(node: ir.Node) -> Product | str:
    if attribute(node, "alpha", 1.0) != 1.0 or attribute(node, "beta", 1.0) != 1.0:
        return "alpha or beta is not one"
    left = ["k", "i"] if attribute(node, "transA", 0) else ["i", "k"]
    right = ["j", "k"] if attribute(node, "transB", 0) else ["k", "j"]
    return _product(node, left, right, ["i", "j"])


def _from_einsum(node: ir.Node) -> Product | str:
    equation = equation_of(node)
    if len(equation.terms) != 2:
        return f"equation {attribute(node, 'equation')!r} has {len(equation.terms)} operands"
    if any(len(set(term)) != len(term) for term in equation.terms):
        return f"equation {attribute(node, 'equation')!r} repeats a label within an operand"
    left, right = equation.terms
    return _product(node, list(left), list(right), list(equation.result))


def _product(node: ir.Node, left: list[str], right: list[str], result: list[str]) -> Product:
    def named(value: ir.Value, labels: list[str]) -> tuple[Label, ...]:
        return tuple(label if size != 1 else None for label, size in zip(labels, shape_of(value), strict=True))

    a, b = node.inputs[:2]
    assert a is not None and b is not None
    return Product(Operand(a, named(a, left)), Operand(b, named(b, right)), named(node.outputs[0], result))
