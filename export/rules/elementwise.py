"""Elementwise operators with numpy broadcasting."""

from __future__ import annotations

from typing import TYPE_CHECKING

import onnx_ir as ir

from retouch.export.lattice import Fact, Rows
from retouch.export.layout import GRID, Layout
from retouch.export.model_shapes import element_count, shape_of
from retouch.export.rules._rule import rule

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
    """Every row-carrying operand lies on the same axes of the result; others broadcast or are gathered by row."""

    def transfer(self, node: ir.Node, facts: Facts) -> list[Fact] | str:
        """The rows of the result, or which operand does not line up."""
        rank = len(shape_of(node.outputs[0]))
        rows: Rows | None = None
        for value in node.inputs:
            found = facts.rows(value)
            if found is None:
                continue
            found = found.moved(rank - len(shape_of(value)))
            if rows is not None and found != rows:
                return f"operands carry rows on different axes or grids: {rows.axes} and {found.axes}"
            rows = found
        assert rows is not None
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
            elif graph.facts.rows(value) is not None:
                inputs.append(_lined_up(value, graph, rank, layout))
            else:
                inputs.append(graph.aligned(value, rank, rows, layout))
        graph.set_rows(output, graph.clone(node, inputs)[0], layout)


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
    layout = _shifted(graph.rows_layout(driver), rank - len(shape_of(driver)))
    rows = graph.facts.rows(node.outputs[0])
    assert rows is not None
    shape = shape_of(node.outputs[0])
    absent = [axis for axis, size in enumerate(shape) if size != 1 and axis not in layout and axis not in rows.axes]
    return (*layout, *absent)


def _lined_up(value: ir.Value, graph: EditGraph, rank: int, layout: Layout) -> ir.Value:
    offset = rank - len(shape_of(value))
    emitted = graph.rows(value)
    return graph.fit(emitted.value, _shifted(emitted.layout, offset), layout)
