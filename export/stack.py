"""The stacked edit graph: several edits of one base run in one run, their rows one after another.

Rows of different edits never meet: products, norms and convolutions work row by row, and the index inputs send every
row to neighbours of its own edit or to cached rows. Only attention looks at all rows of a grid. There the cached keys
stay as they are for all edits, the recomputed ones are put behind them, and a mask input lets every query see its own
edit's keys and, of the cached ones, those that its edit does not recompute. So states are held and read once.
Moments of group norms that follow the active rows are taken of every edit by itself.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from retouch.export.analysis import Facts
from retouch.export.emit import EditGraph
from retouch.export.lattice import Grid
from retouch.export.layout import GRID, Layout, default_layout
from retouch.export.model_shapes import attribute, dtype_of, normal_axis, shape_of
from retouch.export.node_builder import BindingTime
from retouch.export.ops.stacked_attention import LOWEST_SCORE
from retouch.export.stacked_attention import emit_stacked_attention

__all__ = ["StackError", "StackedGraph"]

_COLUMN_OPERATORS = frozenset(
    {"Add", "Cast", "Div", "Einsum", "Identity", "IsNaN", "MatMul", "Mul", "Softmax", "Sub", "Tanh", "Where"}
)
"""Operators that may come between the two products of an attention."""


class StackError(Exception):
    """The model has no stacked edit graph, and why."""


class StackedGraph(EditGraph):
    """An edit graph whose rows are those of several edits.

    A value has *columns* if one of its axes, not the row axis, counts the cached rows of a grid and then all recomputed
    ones, as the scores of attention do.
    """

    def __init__(self, facts: Facts, *, corrected_moments: bool) -> None:
        super().__init__(facts, corrected_moments=corrected_moments)
        self._columns: dict[ir.Value, tuple[int, Grid]] = {}
        self._weights: set[ir.Value] = set()
        self._biases: dict[ir.Value, ir.Value] = {}

    def open_editable(self, source: ir.Value) -> None:
        """Adds the editable input: the active rows of every edit's feed, without the others."""
        rows = self.facts.rows(source)
        assert rows is not None
        sizes = self._row_sizes(source)
        tensor = self.input(f"stacked.{source.name}", dtype_of(source), sizes, BindingTime.EDIT)
        self.set_rows(source, tensor, default_layout(shape_of(source), rows))

    def output(self, value: ir.Value) -> ir.Value:
        """The active rows of an output of the model."""
        rows = self.facts.rows(value)
        if rows is None:
            raise StackError(f"output {value.name!r} is not computed on rows")
        return self.rows_in(value, default_layout(shape_of(value), rows))

    def output_shape(self, value: ir.Value) -> ir.Shape:
        """The shape of an output of the model: active rows first, axes of size one left out."""
        return ir.Shape(self._row_sizes(value))

    def enter(self, node: ir.Node) -> None:
        """Refuses operators that do not know of columns, and what every edit would need for itself."""
        if any(self._is_recomputed(value) for value in node.outputs):
            raise StackError(f"{node.op_type} node {node.name!r} joins rows with tokens that every edit computes anew")
        if node.op_type not in _COLUMN_OPERATORS and any(value in self._columns for value in node.inputs):
            raise StackError(f"{node.op_type} node {node.name!r} reads scores of attention in a way that is not known")

    def _is_recomputed(self, value: ir.Value) -> bool:
        rows = self.facts.rows(value)
        return rows is not None and rows.grid.joint is not None and rows.grid.joint.recomputed

    def whole(self, value: ir.Value | None) -> ir.Value | None:
        """A value without rows; one with rows has no whole form that all edits share."""
        if value is not None and value not in self._whole and value in self._rows:
            raise StackError(f"{value.name!r} is needed whole, once for every edit")
        return super().whole(value)

    def merged(self, value: ir.Value, layout: Layout) -> ir.Value:
        """The cached rows and behind them the recomputed ones."""
        rows = self.facts.rows(value)
        assert rows is not None
        stored = default_layout(shape_of(value), rows)
        both = self.op("Concat", [self.cached(value, stored), self.rows_in(value, stored)], {"axis": 0})
        return self.fit(both, stored, layout)

    def attend(self, node: ir.Node) -> bool:
        """Writes attention out where keys, values or what masks them carry rows."""
        carried = [rows for value in node.inputs[1:] if (rows := self.facts.rows(value)) is not None]
        if carried:
            emit_stacked_attention(node, carried[0].grid, self)
        return bool(carried)

    def existing(self, value: ir.Value) -> ir.Value:
        """The whole form of a value without rows that is there."""
        tensor = self.whole(value)
        assert tensor is not None
        return tensor

    def totalled(self, node: ir.Node) -> None:
        """Refuses a sum over rows that every edit would need for itself."""
        raise StackError(f"{node.op_type} node {node.name!r} sums over the rows, once for every edit")

    def owners(self, grid: Grid) -> Sequence[ir.Value]:
        """The inputs that say which edit every active row of a grid belongs to, and count the edits."""
        whose = self.input(f"owners.{grid.id}", ir.DataType.INT64, [f"M_{grid.id}"], BindingTime.EDIT)
        return whose, self.input("edits", ir.DataType.INT64, ["E"], BindingTime.EDIT)

    def with_columns(self, value: ir.Value) -> ir.Value:
        """A value in its base shape but for its one axis of rows, which has columns.

        It reads the state that the edit graph of one edit reads where it needs the value whole.
        """
        rows, rank = self.facts.rows(value), len(shape_of(value))
        assert rows is not None
        axis = rows.axes[0]
        layout = (*range(axis), GRID, *range(axis + 1, rank))
        return self.op("Concat", [self.cached(value, layout), self.rows_in(value, layout)], {"axis": axis})

    def multiplied(self, result: ir.Value, axis: int, grid: Grid) -> None:
        """Notes that a product of rows with all rows of a grid has columns."""
        self._columns[result] = (axis, grid)

    def summed(self, operand: ir.Value, axis: int, grid: Grid) -> None:
        """Checks that what is summed over all rows of a grid has columns, and those of other edits count nothing."""
        if self._columns.get(operand) != (axis, grid) or operand not in self._weights:
            raise StackError(f"{operand.name!r} is summed over the rows of grid {grid.id!r} without a softmax")

    def lined_up(self, node: ir.Node, inputs: Sequence[ir.Value | None], layout: Layout) -> Sequence[ir.Value | None]:
        """The operands of an elementwise operator, those without rows picked out along the columns of the others."""
        found = {self._columns[value] for value in node.inputs if value in self._columns}
        if not found:
            return inputs
        output = node.outputs[0]
        if len(found) > 1 or any(
            self.facts.rows(v) is not None and v not in self._columns for v in node.inputs if v is not None
        ):
            raise StackError(f"{node.op_type} node {node.name!r} mixes scores of attention with other rows")
        axis, grid = next(iter(found))
        self._columns[output] = (axis, grid)
        weights = any(value in self._weights for value in node.inputs)
        if weights and _replaces_nan(node):
            self._weights.add(output)
        elif weights and node.op_type != "IsNaN":
            raise StackError(f"{node.op_type} node {node.name!r} stands between a softmax and its product")
        rank = len(shape_of(output))
        return [
            tensor
            if value is None or tensor is None or value in self._columns or _size(value, rank, axis) == 1
            else self.along_columns(tensor, grid, layout.index(axis) - len(layout))
            for value, tensor in zip(node.inputs, inputs, strict=True)
        ]

    def scored(self, node: ir.Node, scores: ir.Value, layout: Layout) -> ir.Value:
        """The operand of a softmax, in that layout, with columns that a row's edit does not have out of its sight."""
        source, output = node.inputs[0], node.outputs[0]
        if source not in self._columns:
            return scores
        axis, grid = self._columns[source]
        if normal_axis(int(attribute(node, "axis", -1)), len(shape_of(source))) != axis:
            raise StackError(f"Softmax node {node.name!r} works across the columns")
        self._columns[output] = (axis, grid)
        self._weights.add(output)
        return self.own_scores(output, grid, scores, layout, axis)

    def own_scores(self, value: ir.Value, grid: Grid, scores: ir.Value, layout: Layout, axis: int) -> ir.Value:
        """Scores along an axis of columns, less their row's largest, those of other edits so low that none counts.

        Minus infinity would make engines compute with denormal numbers, at several times the cost. A row that sees
        nothing is NaN, as it is in the model.
        """
        bias = self.fit(self._bias(value, grid), (GRID, axis), layout)
        own = self.op("Add", [scores, bias])
        largest = self.op("ReduceMax", [own, self.ints([layout.index(axis)])], {"keepdims": 1})
        lowest = self.constant(np.array(LOWEST_SCORE, dtype_of(value).numpy()))
        return self.op("Max", [self.op("Sub", [own, largest]), lowest])

    def _bias(self, value: ir.Value, grid: Grid) -> ir.Value:
        """What is added to the scores: zero, or minus infinity where the mask hides a column."""
        rows, dtype = self.facts.rows(value), dtype_of(value)
        assert rows is not None
        sizes = [f"M_{rows.grid.id}", f"K_{grid.id}"]
        mask = self.input(f"mask.{rows.grid.id}.{grid.id}", ir.DataType.FLOAT, sizes, BindingTime.EDIT)
        if mask not in self._biases:
            bias = self.op("Log", [mask])
            self._biases[mask] = bias if dtype == ir.DataType.FLOAT else self.op("Cast", [bias], {"to": int(dtype)})
        return self._biases[mask]

    def _row_sizes(self, value: ir.Value) -> list[int | str]:
        rows, shape = self.facts.rows(value), shape_of(value)
        assert rows is not None
        return [f"M_{rows.grid.id}", *(shape[axis] for axis in default_layout(shape, rows)[1:])]

    def along_columns(self, tensor: ir.Value, grid: Grid, axis: int) -> ir.Value:
        """What varies along all rows of a grid, picked out for the columns."""
        every = self.constant(np.arange(grid.size, dtype=np.int64))
        columns = self.op("Concat", [every, self.row_index(grid)], {"axis": 0})
        return self.op("Gather", [tensor, columns], {"axis": axis})


def _replaces_nan(node: ir.Node) -> bool:
    """Whether a node is Where(IsNaN(p), .., p), which exporters put behind a softmax whose mask may hide everything."""
    if node.op_type != "Where" or node.inputs[0] is None:
        return False
    test = node.inputs[0].producer()
    return test is not None and test.op_type == "IsNaN" and test.inputs[0] is node.inputs[2]


def _size(value: ir.Value, rank: int, axis: int) -> int:
    """The size of an operand along an axis of the result."""
    own = axis - (rank - len(shape_of(value)))
    return shape_of(value)[own] if own >= 0 else 1
