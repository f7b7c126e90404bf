"""Concat, Expand and Tile along axes that carry no rows; Split and Slice along any."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import onnx_ir as ir

from retouch.export.lattice import Fact, Rows
from retouch.export.layout import GRID, Layout
from retouch.export.model_shapes import attribute, constant, normal_axis, shape_of
from retouch.export.rules._rule import rule
from retouch.export.rules.arrange import emit_taken, taken
from retouch.export.rules.joint import emit_joined, emit_part, joined, part_of
from retouch.export.slice_bounds import slice_positions

if TYPE_CHECKING:
    from retouch.export.analysis import Facts
    from retouch.export.emit import EditGraph

__all__ = ["Concat", "Expand", "Slice", "Split", "Tile", "with_axes"]


_BEFORE_FIRST = -(1 << 31)
"""The end of a slice that goes down to the first position."""


def with_axes(layout: Layout, axes: tuple[int, ...]) -> Layout:
    """A layout that names some axes even if their size is one."""
    return (*layout, *(axis for axis in axes if axis not in layout))


@rule("Concat")
class Concat:
    """Operands without rows must span the grid; their rows are gathered."""

    def transfer(self, node: ir.Node, facts: Facts) -> list[Fact] | str:
        """The common rows of the operands."""
        found = {rows for value in node.inputs if (rows := facts.rows(value)) is not None}
        if len(found) != 1:
            return "operands carry rows of different grids or on different axes"
        (rows,) = found
        return joined(node.inputs, _axis(node), facts) if _axis(node) in rows.axes else [rows]

    def emit(self, node: ir.Node, graph: EditGraph) -> None:
        """The same operator on the emitted axis."""
        output, axis = node.outputs[0], _axis(node)
        rows, shape = graph.facts.rows(output), shape_of(output)
        assert rows is not None
        if axis in rows.axes:
            emit_joined(node, graph)
            return
        driver = next(v for v in node.inputs if v is not None and graph.facts.rows(v) is not None)
        base = graph.rows_layout(driver)
        layout = with_axes(base, (axis,))
        parts = []
        for value in node.inputs:
            assert value is not None
            if graph.facts.rows(value) is not None:
                parts.append(graph.rows_in(value, layout))
            else:
                parts.append(_spanning(value, len(shape), rows, layout, graph))
        result = graph.op("Concat", parts, {"axis": layout.index(axis)})
        graph.set_rows(output, result, layout)


def _spanning(value: ir.Value, rank: int, rows: Rows, layout: Layout, graph: EditGraph) -> ir.Value:
    tensor = graph.aligned(value, rank, rows, layout)
    shape = shape_of(value)
    present = [axis for axis in layout if axis == GRID or shape[axis] != 1]
    missing = list(range(layout.index(present[0]))) if present else list(range(len(layout)))
    return graph.op("Unsqueeze", [tensor, graph.ints(missing)]) if missing else tensor


@rule("Split")
class Split:
    """Any split along one axis."""

    def transfer(self, node: ir.Node, facts: Facts) -> list[Fact] | str:
        """The same rows for every part."""
        rows = facts.rows(node.inputs[0])
        if rows is None:
            return "its first operand carries no rows"
        if _axis(node) not in rows.axes:
            return [rows] * len(node.outputs)
        parts: list[Fact | str]
        if rows.grid.joint is None:
            parts = [taken(rows, {_axis(node): range(*ends)}, facts.grids) for ends in _ranges(node)]
        else:
            parts = [part_of(rows, start, stop) for start, stop in _ranges(node)]
        return next((part for part in parts if isinstance(part, str)), [p for p in parts if not isinstance(p, str)])

    def emit(self, node: ir.Node, graph: EditGraph) -> None:
        """The same operator on the emitted axis."""
        source, axis = node.inputs[0], _axis(node)
        assert source is not None
        rows = graph.facts.rows(source)
        if rows is not None and axis in rows.axes:
            for value, (start, stop) in zip(node.outputs, _ranges(node), strict=True):
                if rows.grid.joint is None:
                    graph.set_rows(value, *emit_taken(source, value, {axis: range(start, stop)}, graph))
                else:
                    emit_part(source, value, start, stop, graph)
            return
        layout = with_axes(graph.rows_layout(source), (axis,))
        sizes = graph.ints([shape_of(value)[axis] for value in node.outputs])
        parts = graph.ops(
            "Split",
            [graph.rows_in(source, layout), sizes],
            {"axis": layout.index(axis)},
            outputs=len(node.outputs),
        )
        for value, part in zip(node.outputs, parts, strict=True):
            graph.set_rows(value, part, layout)


@rule("Slice")
class Slice:
    """Constant bounds along any axes."""

    def transfer(self, node: ir.Node, facts: Facts) -> list[Fact] | str:
        """The same rows, a part of a joint sequence, or some rows of the grid."""
        rows, bounds = facts.rows(node.inputs[0]), slice_positions(node)
        if rows is None or bounds is None:
            return "its bounds are not constant"
        if rows.grid.joint is not None and set(bounds) & set(rows.axes):
            return _part(rows, bounds)
        found = taken(rows, bounds, facts.grids)
        return found if isinstance(found, str) else [found]

    def emit(self, node: ir.Node, graph: EditGraph) -> None:
        """The rows that stay, and the same operator on the emitted axes."""
        source, bounds = node.inputs[0], slice_positions(node)
        assert source is not None and bounds is not None
        rows, output = graph.facts.rows(source), node.outputs[0]
        assert rows is not None
        if rows.grid.joint is not None and set(bounds) & set(rows.axes):
            ((positions),) = bounds.values()
            emit_part(source, output, positions[0], positions[-1] + 1, graph)
            return
        tensor, layout = emit_taken(source, output, bounds, graph)
        others = {axis: positions for axis, positions in bounds.items() if axis not in rows.axes}
        layout, tensor = with_axes(layout, tuple(others)), graph.fit(tensor, layout, with_axes(layout, tuple(others)))
        for axis, positions in others.items():
            step = positions[1] - positions[0] if len(positions) > 1 else 1
            end = positions[-1] + step
            bounds_of = (positions[0], end if end >= 0 else _BEFORE_FIRST, layout.index(axis), step)
            tensor = graph.op("Slice", [tensor, *(graph.ints([number]) for number in bounds_of)])
        graph.set_rows(output, tensor, layout)


def _part(rows: Rows, bounds: Mapping[int, Sequence[int]]) -> list[Fact] | str:
    (positions,) = bounds.values() if len(bounds) == 1 else ((),)
    if not positions or list(positions) != list(range(positions[0], positions[-1] + 1)):
        return "it slices a joint sequence, and another axis or with steps"
    part = part_of(rows, positions[0], positions[-1] + 1)
    return part if isinstance(part, str) else [part]


def _ranges(node: ir.Node) -> list[tuple[int, int]]:
    """First position and the one behind the last of every part of a split."""
    sizes = [shape_of(value)[_axis(node)] for value in node.outputs]
    return [(sum(sizes[:number]), sum(sizes[: number + 1])) for number in range(len(sizes))]


@rule("Expand")
class Expand:
    """Broadcasting of axes that carry no rows, as in grouped key/value heads."""

    def transfer(self, node: ir.Node, facts: Facts) -> list[Fact] | str:
        """The same rows, moved by the axes that are put in front."""
        rows = facts.rows(node.inputs[0])
        if rows is None:
            return "its first operand carries no rows"
        moved = rows.moved(len(shape_of(node.outputs[0])) - len(shape_of(node.inputs[0])))
        before = tuple(shape_of(node.inputs[0])[axis] for axis in rows.axes)
        if before != tuple(shape_of(node.outputs[0])[axis] for axis in moved.axes):
            return "it enlarges the grid"
        return [moved]

    def emit(self, node: ir.Node, graph: EditGraph) -> None:
        """An Expand that leaves the row axis alone."""
        source, output = node.inputs[0], node.outputs[0]
        assert source is not None
        shape = shape_of(output)
        offset = len(shape) - len(shape_of(source))
        layout = tuple(axis if axis == GRID else axis + offset for axis in graph.rows_layout(source))
        rows = graph.facts.rows(output)
        assert rows is not None
        grown = tuple(axis for axis, size in enumerate(shape) if size != 1 and axis not in (*layout, *rows.axes))
        if not grown:
            graph.set_rows(output, graph.rows_in(source, graph.rows_layout(source)), layout)
            return
        wanted = tuple(sorted((*layout, *grown), key=lambda axis: -1 if axis == GRID else axis))
        tensor = graph.fit(graph.rows_in(source, graph.rows_layout(source)), layout, wanted)
        sizes = [1 if axis == GRID else shape[axis] for axis in wanted]
        graph.set_rows(output, graph.op("Expand", [tensor, graph.ints(sizes)]), wanted)


@rule("Tile")
class Tile:
    """Repetition along axes that carry no rows."""

    def transfer(self, node: ir.Node, facts: Facts) -> list[Fact] | str:
        """The same rows."""
        rows, repeats = facts.rows(node.inputs[0]), constant(node.inputs[1])
        if rows is None or repeats is None:
            return "its repeats are not constant"
        return "it repeats the grid" if any(repeats[axis] != 1 for axis in rows.axes) else [rows]

    def emit(self, node: ir.Node, graph: EditGraph) -> None:
        """The same operator on the emitted axes."""
        source, repeats = node.inputs[0], constant(node.inputs[1])
        assert source is not None and repeats is not None
        repeated = tuple(axis for axis, count in enumerate(repeats) if count != 1)
        layout = with_axes(graph.rows_layout(source), repeated)
        counts = graph.ints([1 if axis == GRID else int(repeats[axis]) for axis in layout])
        graph.set_rows(node.outputs[0], graph.op("Tile", [graph.rows_in(source, layout), counts]), layout)


def _axis(node: ir.Node) -> int:
    return normal_axis(int(attribute(node, "axis", 0)), len(shape_of(node.inputs[0])))
