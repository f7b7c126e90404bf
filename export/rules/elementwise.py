"""Elementwise operators with numpy broadcasting."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import onnx_ir as ir

from retouch.export.lattice import Fact, Grid, Rows
from retouch.export.layout import GRID, Layout
from retouch.export.model_shapes import element_count, shape_of
from retouch.export.rules._rule import rule
from retouch.export.rules.arrange import read_rows

if TYPE_CHECKING:
    from retouch.export.analysis import Facts
    from retouch.export.emit import EditGraph

__all__ = ["Elementwise", "ScalarOperands"]


def _unary() -> tuple[str, ...]:
    activations = "Celu Elu Gelu HardSigmoid HardSwish LeakyRelu Mish Relu Selu Shrink Sigmoid Softplus Softsign Swish"
    functions = "Abs Acos Acosh Asin Asinh Atan Atanh Ceil Cos Cosh Erf Exp Floor IsInf IsNaN Log Neg Not Reciprocal"
    more = "Round Sign Sin Sinh Sqrt Tan Tanh ThresholdedRelu Cast Identity BitwiseNot"
    return tuple(f"{activations} {functions} {more}".split())


def _variadic() -> tuple[str, ...]:
    arithmetic = "Add Sub Mul Div Pow Mod Max Min Mean Sum PRelu Where"
    logic = "And Or Xor Equal Greater GreaterOrEqual Less LessOrEqual BitShift BitwiseAnd BitwiseOr BitwiseXor"
    return tuple(f"{arithmetic} {logic}".split())


@rule(*_unary(), *_variadic())
class Elementwise:
    """Row-carrying operands lie on the same axes of the result; others broadcast or are gathered by row.

    Operands on grids of the same dims, as a shifted value and the one that it is added to, meet on one of them.
    An operand with rows on other axes, along which the result has none, is merged and taken whole: a mask of keys
    that is added to attention scores.
    """

    def transfer(self, node: ir.Node, facts: Facts) -> list[Fact] | str:
        """The rows of the result, or which operand does not line up."""
        found = {id(value): rows for value in node.inputs if (rows := _moved(value, node, facts)) is not None}
        rows = _common(node, found)
        if rows is None:
            axes = " and ".join(str(one.axes) for one in dict.fromkeys(found.values()))
            return f"operands carry rows on different axes or grids: {axes}"
        if rows.grid.dims != _sizes(node, rows) and not rows.flat:
            return "broadcasting enlarges the grid"
        return [rows]

    def emit(self, node: ir.Node, graph: EditGraph) -> None:
        """The same operator on rows, in the layout of its largest row-carrying operand."""
        output = node.outputs[0]
        rows = graph.facts.rows(output)
        assert rows is not None
        rank = len(shape_of(output))
        layout = _result_layout(node, graph, rank)
        inputs: list[ir.Value | None] = []
        for value in node.inputs:
            if value is None:
                inputs.append(None)
            elif (moved := _moved(value, node, graph.facts)) == rows:
                inputs.append(_lined_up(value, graph, rank, layout))
            elif moved is not None and _meet(moved, rows):
                inputs.append(_on_grid(value, rows.grid, graph, rank, layout))
            else:
                inputs.append(graph.aligned(value, rank, rows, layout))
        graph.set_rows(output, graph.clone(node, graph.lined_up(node, inputs, layout))[0], layout)


def _moved(value: ir.Value | None, node: ir.Node, facts: Facts) -> Rows | None:
    """The rows of an operand, on the axes of the result."""
    rows = facts.rows(value)
    return None if rows is None else rows.moved(len(shape_of(node.outputs[0])) - len(shape_of(value)))


def _common(node: ir.Node, found: Mapping[int, Rows]) -> Rows | None:
    """The rows to which all operands with other rows broadcast; ``None`` if there are none."""
    rank = len(shape_of(node.outputs[0]))

    def broadcasts(value: ir.Value | None, axes: tuple[int, ...]) -> bool:
        shape = (1,) * (rank - len(shape_of(value))) + shape_of(value)
        return all(shape[axis] == 1 for axis in axes)

    fitting = [
        rows
        for rows in dict.fromkeys(found.values())
        if all(_meet(found.get(id(v), rows), rows) or broadcasts(v, rows.axes) for v in node.inputs if v is not None)
    ]
    if any(not _meet(fitting[0], rows) for rows in fitting[1:]):
        return None
    return min(fitting, key=lambda rows: rows.grid.picked is not None, default=None)


def _meet(one: Rows, other: Rows) -> bool:
    """Whether rows lie on the same axes, on one grid or on two of the same dims whose rows can be read one for one."""
    if one.grid == other.grid or one.axes != other.axes:
        return one == other
    grids = (one.grid, other.grid)
    return one.grid.dims == other.grid.dims and all(grid.joint is None and grid.view is None for grid in grids)


def _on_grid(value: ir.Value, grid: Grid, graph: EditGraph, rank: int, layout: Layout) -> ir.Value:
    """An operand's rows at the active rows of another grid of the same dims: its own, or the cached ones."""
    emitted = read_rows(value, [range(size) for size in grid.dims], grid, graph)
    offset = rank - len(shape_of(value))
    return graph.fit(emitted[0], _shifted(emitted[1], offset), layout)


@rule("Clip", "Dropout", "CastLike", "QuantizeLinear", "DequantizeLinear")
class ScalarOperands:
    """Elementwise operators whose further operands are scalars that stay as they are."""

    def transfer(self, node: ir.Node, facts: Facts) -> list[Fact] | str:
        """The rows of the first operand, or why the others are in the way."""
        rows = facts.rows(node.inputs[0])
        if rows is None:
            return "its first operand carries no rows"
        if any(value is not None and element_count(value) != 1 for value in node.inputs[1:]):
            return "an operand after the first is not a scalar"
        if len(node.outputs) != 1:
            return "its mask output is used"
        return [rows]

    def emit(self, node: ir.Node, graph: EditGraph) -> None:
        """The same operator on rows."""
        source = node.inputs[0]
        assert source is not None
        emitted = graph.rows(source)
        inputs = [emitted.value, *(graph.whole(value) for value in node.inputs[1:])]
        graph.set_rows(node.outputs[0], graph.clone(node, inputs)[0], emitted.layout)


def _sizes(node: ir.Node, rows: Rows) -> tuple[int, ...]:
    shape = shape_of(node.outputs[0])
    return tuple(shape[axis] for axis in rows.axes)


def _shifted(layout: Layout, offset: int) -> Layout:
    return tuple(axis if axis == GRID else axis + offset for axis in layout)


def _result_layout(node: ir.Node, graph: EditGraph, rank: int) -> Layout:
    """The layout of the largest row-carrying operand, completed by the axes that only others have."""
    carriers = [value for value in node.inputs if value is not None and graph.facts.rows(value) is not None]
    driver = max(carriers, key=element_count)
    # A lone operand keeps its axes of size one, which runtimes expect in norms.
    own = graph.rows(driver).layout if len(carriers) == 1 else graph.rows_layout(driver)
    layout = _shifted(own, rank - len(shape_of(driver)))
    rows = graph.facts.rows(node.outputs[0])
    assert rows is not None
    shape = shape_of(node.outputs[0])
    absent = [axis for axis, size in enumerate(shape) if size != 1 and axis not in layout and axis not in rows.axes]
    return (*layout, *absent)


def _lined_up(value: ir.Value, graph: EditGraph, rank: int, layout: Layout) -> ir.Value:
    offset = rank - len(shape_of(value))
    emitted = graph.rows(value)
    return graph.fit(emitted.value, _shifted(emitted.layout, offset), layout)
