"""Matrix products of every kind: MatMul, Gemm and two-operand Einsum become one contraction of labelled axes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import onnx_ir as ir

from retouch.export.lattice import Fact, Rows, Statistic
from retouch.export.layout import GRID, Layout
from retouch.export.model_shapes import attribute, dtype_of, shape_of
from retouch.export.node_builder import BindingTime
from retouch.export.rules._product import Product, contraction_of
from retouch.export.rules._rule import RETOUCH_DOMAIN, rule
from retouch.export.rules._total import emit_total, is_total
from retouch.export.rules.blocked import BlockedProduct, blocks_of
from retouch.export.rules.transpose import permute_axes

if TYPE_CHECKING:
    from retouch.export.analysis import Facts
    from retouch.export.emit import EditGraph

__all__ = ["Contraction"]


def _driven(product: Product, facts: Facts) -> Product | str:
    """The product with the operand whose rows survive on the left."""
    for candidate in (product, product.swapped()):
        rows = facts.rows(candidate.left.value)
        if rows is None:
            continue
        labels = [candidate.left.labels[axis] for axis in rows.axes]
        if any(label is None or label not in candidate.result for label in labels):
            continue
        other = facts.rows(candidate.right.value)
        if other is not None and (other.grid, [candidate.right.labels[a] for a in other.axes]) == (rows.grid, labels):
            return candidate
        if blocks_of(candidate, facts):
            return candidate
        if other is not None and len(other.axes) > 1:
            return "the other operand carries rows on several axes"
        shared = [label for label in labels if label in candidate.right.labels]
        if shared and (other is None or len(labels) > 1):
            return "the other operand varies along the grid"
        if shared and other is not None and candidate.right.labels[other.axes[0]] != labels[0]:
            return "the other operand carries its rows on another axis"
        if shared and other is not None and other.grid != rows.grid:
            return "the operands carry different grids on one axis"
        return candidate
    return "it sums over the rows"


@rule("MatMul", "Gemm", "Einsum")
class Contraction:
    """One operand keeps its rows, and rows of the other are merged into the cached ones first; or rows are summed."""

    def transfer(self, node: ir.Node, facts: Facts) -> list[Fact] | str:
        """The rows of the result, a statistic if it sums over all of them, or why it is neither."""
        if node.op_type == "Einsum" and len(node.inputs) == 1:
            return _transfer_permutation(node, facts)
        product = contraction_of(node)
        if isinstance(product, str):
            return product
        if len(node.inputs) > 2 and node.inputs[2] is not None and facts.rows(node.inputs[2]) is not None:
            return "its bias depends on the editable input"
        if is_total(product, facts):
            biased = len(node.inputs) > 2 and node.inputs[2] is not None
            return "it adds a bias to a sum over the rows" if biased else [Statistic()]
        driven = _driven(product, facts)
        if isinstance(driven, str):
            return driven
        for one_sided in (
            driven.labels(left=True, right=False, result=False),
            driven.labels(left=False, right=True, result=False),
        ):
            if one_sided:
                return "it sums over an axis of one operand only"
        if not driven.labels(left=True, right=True, result=False):
            return "it is an outer product"
        rows = facts.rows(driven.left.value)
        assert rows is not None
        return [Rows(rows.grid, tuple(driven.result.index(driven.left.labels[axis]) for axis in rows.axes))]

    def emit(self, node: ir.Node, graph: EditGraph) -> None:
        """A Gemm for rows against weights, otherwise a batched MatMul."""
        if node.op_type == "Einsum" and len(node.inputs) == 1:
            _emit_permutation(node, graph)
            return
        product = contraction_of(node)
        assert isinstance(product, Product)
        if is_total(product, graph.facts):
            emit_total(node, product, graph)
            return
        driven = _driven(product, graph.facts)
        assert isinstance(driven, Product)
        along = blocks_of(driven, graph.facts)
        if along:
            tensor, layout = BlockedProduct(driven, along, graph).emit()
        else:
            _tell_columns(driven, node, graph)
            tensor, layout = _Emission(driven, node, graph).emit()
        graph.set_rows(node.outputs[0], tensor, layout)


def _tell_columns(product: Product, node: ir.Node, graph: EditGraph) -> None:
    """Says which axes count all rows of the right operand's grid."""
    rows = graph.facts.rows(product.right.value)
    label = product.right.labels[rows.axes[0]] if rows is not None else None
    if rows is None or label is None:
        return
    if label not in product.left.labels:
        graph.multiplied(node.outputs[0], product.result.index(label), rows.grid)
    elif label not in product.result:
        graph.summed(product.left.value, product.left.labels.index(label), rows.grid)


@dataclass(frozen=True)
class _Emission:
    """Emits a product whose left operand carries the rows of the result."""

    product: Product
    node: ir.Node
    graph: EditGraph

    def emit(self) -> tuple[ir.Value, Layout]:
        batch = self.product.labels(left=True, right=True, result=True)
        summed = self.product.labels(left=True, right=True, result=False)
        outer = self.product.labels(left=False, right=True, result=True)
        left = self._left_layout(batch, summed)
        kept = left[: len(left) - len(summed)]
        tensor = self._merge_tail(self.graph.rows_in(self.product.left.value, left), left, len(summed))
        if batch:
            result = self._batched(tensor, kept, batch, summed, outer)
        else:
            result = self._plain(tensor, kept, summed, outer)
        named = self._result_axes(kept)
        targets = tuple(self.product.result.index(label) for label in outer)
        if len(outer) != 1:
            sizes = [self._size(a, named) for a in named] + [self._result_shape()[t] for t in targets]
            result = self.graph.op("Reshape", [result, self.graph.ints(sizes)])
        return self._with_bias(result, (*named, *targets))

    def _left_layout(self, batch: list[str], summed: list[str]) -> Layout:
        """Batch axes, the axes that survive in the order they were emitted, then the summed ones."""
        units = self.graph.rows_layout(self.product.left.value)
        first, last = self._units(batch), self._units(summed)
        middle = [axis for axis in units if axis not in first and axis not in last]
        return (*first, *middle, *last)

    def _units(self, labels: list[str]) -> Layout:
        """The emitted axes of some labels of the left operand; all axes of the grid are one."""
        rows = self._left_rows()
        axes = self.product.left.axes(labels)
        return tuple(dict.fromkeys(GRID if axis in rows.axes else axis for axis in axes))

    def _merge_tail(self, tensor: ir.Value, layout: Layout, count: int) -> ir.Value:
        if count == 1:
            return tensor
        shape = shape_of(self.product.left.value)
        sizes = [-1 if axis == GRID else shape[axis] for axis in layout]
        return self.graph.op(
            "Reshape", [tensor, self.graph.ints([*sizes[: len(sizes) - count], math.prod(sizes[len(sizes) - count :])])]
        )

    def _plain(self, tensor: ir.Value, kept: Layout, summed: list[str], outer: list[str]) -> ir.Value:
        """Rows against a matrix: Gemm, which streams a prepacked weight and takes a bias."""
        weight, transposed = self._right_matrix(summed, outer)
        columns = math.prod(self._right_sizes(outer))
        if len(kept) == 1:
            return self.graph.op("Gemm", [tensor, weight], {"transB": int(transposed)})
        depth = math.prod(self._right_sizes(summed))
        shape = shape_of(self.product.left.value)
        if len(kept) == 2 and kept[0] == GRID and self.graph.time[weight] is BindingTime.CONSTANT:
            operands = [tensor, weight, None, self.graph.ints([-1, shape[kept[1]], columns])]
            dtype = dtype_of(self.node.outputs[0])
            attributes = {"transB": int(transposed)}
            return self.graph.op("BatchRowLinear", operands, attributes, domain=RETOUCH_DOMAIN, dtype=dtype)
        flat = self.graph.op("Reshape", [tensor, self.graph.ints([-1, depth])])
        flat = self.graph.op("Gemm", [flat, weight], {"transB": int(transposed)})
        sizes = [-1 if axis == GRID else shape[axis] for axis in kept]
        return self.graph.op("Reshape", [flat, self.graph.ints([*sizes, columns])])

    def _right_matrix(self, summed: list[str], outer: list[str]) -> tuple[ir.Value, bool]:
        right = self.product.right
        rows = self.graph.facts.rows(right.value)
        order = [label for label in right.labels if label is not None]
        if rows is not None and right.labels[rows.axes[0]] in outer:
            order = [*outer, *summed]
        if order == [*outer, *summed] and len(summed) >= 1:
            return self._right_dense(order, [len(outer), len(summed)]), True
        return self._right_dense([*summed, *outer], [len(summed), len(outer)]), False

    def _right_dense(self, labels: list[str], groups: list[int]) -> ir.Value:
        """The right operand with all its rows, its labels in an order and merged into groups."""
        right, graph = self.product.right, self.graph
        rows = graph.facts.rows(right.value)
        axes = right.axes(labels)
        if rows is not None:
            layout = tuple(GRID if axis in rows.axes else axis for axis in axes)
            tensor = graph.merged(right.value, layout)
        else:
            tensor = graph.permuted_whole(right.value, axes)
        if all(count == 1 for count in groups):
            return tensor
        sizes, start = self._right_sizes(labels), 0
        merged = []
        for count in groups:
            merged.append(math.prod(sizes[start : start + count]))
            start += count
        return graph.op("Reshape", [tensor, graph.ints(merged)])

    def _batched(
        self, tensor: ir.Value, kept: Layout, batch: list[str], summed: list[str], outer: list[str]
    ) -> ir.Value:
        graph, shape = self.graph, shape_of(self.product.left.value)
        right = self._right_rows(batch, summed, outer)
        units = len(self._units(batch))
        middle = kept[units:]
        sizes = [-1 if axis == GRID else shape[axis] for axis in kept]
        depth, columns = math.prod(self._right_sizes(summed)), math.prod(self._right_sizes(outer))
        lead = sizes[:units]
        if len(middle) != 1:
            rows = math.prod(sizes[units:]) if GRID not in middle else -1
            tensor = graph.op("Reshape", [tensor, graph.ints([*lead, rows, depth])])
        result = graph.op("MatMul", [tensor, right])
        if len(middle) != 1:
            result = graph.op("Reshape", [result, graph.ints([*sizes, columns])])
        return result

    def _right_rows(self, batch: list[str], summed: list[str], outer: list[str]) -> ir.Value:
        rows = self.graph.facts.rows(self.product.right.value)
        labels = [*batch, *summed, *outer]
        if rows is not None and self.product.right.labels[rows.axes[0]] in batch:
            layout = tuple(
                dict.fromkeys(GRID if axis in rows.axes else axis for axis in self.product.right.axes(labels))
            )
            tensor = self.graph.rows_in(self.product.right.value, layout)
            if len(summed) == len(outer) == 1:
                return tensor
            shape = shape_of(self.product.right.value)
            lead = [-1 if a == GRID else shape[a] for a in layout[: len(layout) - len(summed) - len(outer)]]
            tail = [math.prod(self._right_sizes(summed)), math.prod(self._right_sizes(outer))]
            return self.graph.op("Reshape", [tensor, self.graph.ints([*lead, *tail])])
        return self._right_dense(labels, [1] * len(batch) + [len(summed), len(outer)])

    def _with_bias(self, tensor: ir.Value, layout: Layout) -> tuple[ir.Value, Layout]:
        bias = self.node.inputs[2] if len(self.node.inputs) > 2 else None
        if bias is None:
            return tensor, layout
        rows = self.graph.facts.rows(self.node.outputs[0])
        assert rows is not None
        aligned = self.graph.aligned(bias, len(self._result_shape()), rows, layout)
        return self.graph.op("Add", [tensor, aligned]), layout

    def _left_rows(self) -> Rows:
        rows = self.graph.facts.rows(self.product.left.value)
        assert rows is not None
        return rows

    def _right_sizes(self, labels: list[str]) -> list[int]:
        shape = shape_of(self.product.right.value)
        return [shape[axis] for axis in self.product.right.axes(labels)]

    def _result_shape(self) -> tuple[int, ...]:
        return shape_of(self.node.outputs[0])

    def _result_axes(self, kept: Layout) -> Layout:
        labels = self.product.left.labels
        return tuple(axis if axis == GRID else self.product.result.index(labels[axis]) for axis in kept)

    def _size(self, axis: int, _named: Layout) -> int:
        return -1 if axis == GRID else self._result_shape()[axis]


def _permutation(node: ir.Node) -> tuple[int, ...] | None:
    equation = str(attribute(node, "equation")).replace(" ", "")
    source, _, result = equation.partition("->")
    if "." in equation or sorted(source) != sorted(result) or len(set(source)) != len(source):
        return None
    return tuple(source.index(label) for label in result)


def _transfer_permutation(node: ir.Node, facts: Facts) -> list[Fact] | str:
    perm, rows = _permutation(node), facts.rows(node.inputs[0])
    if perm is None or rows is None:
        return f"equation {attribute(node, 'equation')!r} is not a plain permutation"
    return [permute_axes(rows, perm)]


def _emit_permutation(node: ir.Node, graph: EditGraph) -> None:
    perm, source = _permutation(node), node.inputs[0]
    assert perm is not None and source is not None
    emitted = graph.rows(source)
    layout = tuple(axis if axis == GRID else perm.index(axis) for axis in emitted.layout)
    graph.set_rows(node.outputs[0], emitted.value, layout)
