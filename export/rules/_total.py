"""Products summed over all rows of a grid, as keys times values in linear attention."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import onnx_ir as ir

from retouch.export.lattice import Invariant, Rows
from retouch.export.layout import GRID, Layout
from retouch.export.model_shapes import shape_of
from retouch.export.rules._product import Operand, Product
from retouch.export.rules._statistic import base_rows, in_float32, set_moved

if TYPE_CHECKING:
    from retouch.export.analysis import Facts
    from retouch.export.emit import EditGraph

__all__ = ["emit_total", "is_total"]


def is_total(product: Product, facts: Facts) -> bool:
    """Whether the rows of every operand that has some are summed: the same rows, or against what no edit changes."""
    operands = (product.left, product.right)
    carried = {tuple(_row_labels(operand, rows)) for operand in operands if (rows := facts.rows(operand.value))}
    grids = {rows.grid for operand in operands if (rows := facts.rows(operand.value))}
    if len(carried) != 1 or len(grids) != 1:
        return False
    (labels,) = carried
    summed = product.labels(left=True, right=True, result=False)
    others = [facts.of(operand.value) for operand in operands if facts.rows(operand.value) is None]
    return all(label in summed for label in labels) and all(isinstance(fact, Invariant) for fact in others)


def _row_labels(operand: Operand, rows: Rows) -> list[str | None]:
    return [operand.labels[axis] for axis in rows.axes]


def emit_total(node: ir.Node, product: Product, graph: EditGraph) -> None:
    """The base run's sum, plus what the active rows contribute now, minus what they contributed then."""
    set_moved(node, _Change(product, node, graph).tensor(), graph)


@dataclass(frozen=True)
class _Change:
    """One product whose summed axis holds the new rows and behind them the old ones, those with the other sign."""

    product: Product
    node: ir.Node
    graph: EditGraph

    def tensor(self) -> ir.Value:
        """The change in the result's shape."""
        product = self.product
        batch = product.labels(left=True, right=True, result=True)
        first = product.labels(left=True, right=False, result=True)
        last = product.labels(left=False, right=True, result=True)
        left, right = self._sides(batch)
        left = self._matrix(product.left, left, batch, first)
        right = self._matrix(product.right, right, batch, last)
        order = [*range(len(batch)), len(batch) + 1, len(batch)]
        change = self.graph.op("MatMul", [self.graph.op("Transpose", [left], {"perm": order}), right])
        return self._in_base_shape(change, [*batch, *first, *last])

    def _sides(self, batch: list[str]) -> tuple[ir.Value, ir.Value]:
        """Both operands in their layouts; rows against what no edit changes need their difference only."""
        graph, left, right = self.graph, self.product.left, self.product.right
        if graph.facts.rows(right.value) is None:
            return self._difference(left, batch), self._picked(right, batch)
        if graph.facts.rows(left.value) is None:
            return self._picked(left, batch), self._difference(right, batch)
        axis = {"axis": len(batch)}
        new, old = self._rows(left, batch)
        signed = graph.op("Concat", [new, graph.op("Neg", [old])], axis)
        return signed, graph.op("Concat", list(self._rows(right, batch)), axis)

    def _layout(self, operand: Operand, batch: list[str]) -> Layout:
        """Batch, rows, the other summed axes, the axes that stay."""
        summed = self.product.labels(left=True, right=True, result=False)
        stay = [label for label in operand.labels if label is not None and label not in (*batch, *summed)]
        axes = operand.axes([*batch, *self._row_labels(), *(s for s in summed if s not in self._row_labels()), *stay])
        rows = self.graph.facts.rows(operand.value)
        taken = () if rows is None else rows.axes
        return tuple(dict.fromkeys(GRID if axis in taken else axis for axis in axes))

    def _row_labels(self) -> list[str]:
        for operand in (self.product.left, self.product.right):
            rows = self.graph.facts.rows(operand.value)
            if rows is not None:
                return [label for axis in rows.axes if (label := operand.labels[axis]) is not None]
        raise AssertionError("no operand carries rows")

    def _rows(self, operand: Operand, batch: list[str]) -> tuple[ir.Value, ir.Value]:
        layout, value, graph = self._layout(operand, batch), operand.value, self.graph
        new, old = graph.rows_in(value, layout), base_rows(value, layout, graph)
        return in_float32(new, value, graph), in_float32(old, value, graph)

    def _difference(self, operand: Operand, batch: list[str]) -> ir.Value:
        return self.graph.op("Sub", self._rows(operand, batch))

    def _picked(self, operand: Operand, batch: list[str]) -> ir.Value:
        """The active rows of an operand that no edit changes, its row axes merged into one first."""
        graph, layout, shape = self.graph, self._layout(operand, batch), shape_of(operand.value)
        tensor = graph.permuted_whole(operand.value, layout)
        grid = self._grid_rows().grid
        count, place = len(self._row_labels()), len(batch)
        sizes = [shape[axis] for axis in layout]
        if count > 1:
            tensor = graph.op("Reshape", [tensor, graph.ints([*sizes[:place], grid.size, *sizes[place + count :]])])
        picked = graph.op("Gather", [tensor, graph.row_index(grid)], {"axis": place})
        return in_float32(picked, operand.value, graph)

    def _grid_rows(self) -> Rows:
        rows = self.graph.facts.rows(self.product.left.value) or self.graph.facts.rows(self.product.right.value)
        assert rows is not None
        return rows

    def _matrix(self, operand: Operand, tensor: ir.Value, batch: list[str], stay: list[str]) -> ir.Value:
        """[batch..., summed, the axes that stay]: the first and the last merged into one axis each."""
        sizes = dict(zip(operand.labels, shape_of(operand.value), strict=True))
        summed = self.product.labels(left=True, right=True, result=False)
        if len(stay) == 1 and len(summed) == len(self._row_labels()):
            return tensor
        lead = [sizes[label] for label in batch]
        return self.graph.op("Reshape", [tensor, self.graph.ints([*lead, -1, math.prod(sizes[s] for s in stay)])])

    def _in_base_shape(self, tensor: ir.Value, labels: list[str]) -> ir.Value:
        graph, result = self.graph, [label for label in self.product.result if label is not None]
        sizes = dict(zip(self.product.result, shape_of(self.node.outputs[0]), strict=True))
        if labels != result:
            tensor = graph.op("Reshape", [tensor, graph.ints([sizes[label] for label in labels])])
            tensor = graph.op("Transpose", [tensor], {"perm": [labels.index(label) for label in result]})
        return graph.op("Reshape", [tensor, graph.ints(shape_of(self.node.outputs[0]))])
