"""Reshape and its special cases: factors the two shapes into groups and keeps the grid a group of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import onnx_ir as ir

from retouch.export.grid_registry import root_of
from retouch.export.lattice import Fact, Rows
from retouch.export.layout import GRID, Layout
from retouch.export.model_shapes import shape_of
from retouch.export.rules._neighbourhood import is_level
from retouch.export.rules._rule import rule
from retouch.export.rules.arrange import rearranged
from retouch.export.rules.regrid import emit_regrid, regrid_of

if TYPE_CHECKING:
    from retouch.export.analysis import Facts
    from retouch.export.emit import EditGraph

__all__ = ["Reshape"]


@dataclass(frozen=True)
class _Group:
    """Axes of the operand and axes of the result that hold the same elements in the same order."""

    source: tuple[int, ...]
    target: tuple[int, ...]


@rule("Reshape", "Squeeze", "Unsqueeze", "Flatten")
class Reshape:
    """Possible where no axis mixes rows with anything else, or where rows are split or grouped into another grid.

    An axis of the grid that is cut into runs gives a view of the grid. Where what follows cannot live with rows on both
    axes, the runs are grouped into coarser rows instead (``cuts.py``).

    Axes of size one do not count.
    """

    def transfer(self, node: ir.Node, facts: Facts) -> list[Fact] | str:
        """The rows on the result's axes, or how the reshape breaks them up."""
        rows = facts.rows(node.inputs[0])
        if rows is None:
            return "its first operand carries no rows"
        source, target = shape_of(node.inputs[0]), shape_of(node.outputs[0])
        if 1 in rows.grid.dims:
            return "a grid axis has size one, so its place in the result is ambiguous"
        groups = _groups(source, target)
        axes = _target_axes(rows, groups, target)
        if axes is not None:
            return [Rows(rows.grid, axes)]
        pairs = [(group.source, group.target) for group in groups]
        regrid = regrid_of(rows, pairs, source, target)
        if regrid is None or not (regrid.splits or node in facts.grouped):
            moved = rearranged(rows, pairs, target, facts.grids)
            if moved is not None:
                return [moved]
        if regrid is None or not is_level(rows.grid):
            return f"the reshape {list(source)} -> {list(target)} mixes or splits the grid axes {list(rows.axes)}"
        return [Rows(facts.grids.get(tuple(target[axis] for axis in regrid.axes)), regrid.axes)]

    def emit(self, node: ir.Node, graph: EditGraph) -> None:
        """A reshape of the other axes, after a transpose only where a group is not contiguous."""
        value, output = node.inputs[0], node.outputs[0]
        assert value is not None
        rows, moved = graph.facts.rows(value), graph.facts.rows(output)
        assert rows is not None and moved is not None
        source, target = shape_of(value), shape_of(output)
        groups = _groups(source, target)
        if root_of(rows.grid) != root_of(moved.grid):
            regrid = regrid_of(rows, [(g.source, g.target) for g in groups], source, target)
            assert regrid is not None
            emit_regrid(node, regrid, graph)
            return
        groups = [g for g in groups if not set(g.source) & set(rows.axes)]
        layout = _contiguous(graph.rows_layout(value), groups)
        tensor = graph.rows_in(value, layout)
        result = _renamed(layout, groups)
        if any(len(group.source) != len(group.target) for group in groups):
            tensor = graph.op("Reshape", [tensor, graph.ints([-1 if a == GRID else target[a] for a in result])])
        graph.set_rows(output, tensor, result)


def _groups(source: tuple[int, ...], target: tuple[int, ...]) -> list[_Group]:
    """The finest groups of axes with equal element counts, axes of size one left out."""
    left = [axis for axis, size in enumerate(source) if size != 1]
    right = [axis for axis, size in enumerate(target) if size != 1]
    groups = []
    i = j = 0
    while i < len(left):
        first_i, first_j = i, j
        a, b = source[left[i]], target[right[j]]
        i, j = i + 1, j + 1
        while a != b:
            if a < b:
                a, i = a * source[left[i]], i + 1
            else:
                b, j = b * target[right[j]], j + 1
        groups.append(_Group(tuple(left[first_i:i]), tuple(right[first_j:j])))
    return groups


def _target_axes(rows: Rows, groups: list[_Group], target: tuple[int, ...]) -> tuple[int, ...] | None:
    touched = [group for group in groups if set(group.source) & set(rows.axes)]
    sources = [axis for group in touched for axis in group.source]
    targets = [axis for group in touched for axis in group.target]
    if set(sources) != set(rows.axes):
        return None
    sizes = tuple(target[axis] for axis in targets)
    if all(len(group.source) == len(group.target) == 1 for group in touched):
        place = dict(zip(sources, targets, strict=True))
        return tuple(place[axis] for axis in rows.axes)
    if len(touched) != 1 or tuple(sources) != rows.axes or rows.grid.view is not None:
        return None
    return tuple(targets) if sizes in ((rows.grid.size,), rows.grid.dims) else None


def _contiguous(layout: Layout, groups: list[_Group]) -> Layout:
    """A layout in which the axes of every group stand together in order.

    If it is another one than before, the rows move to the front, where the products that usually follow want them.
    """
    for group in groups:
        if len(group.source) < 2:
            continue
        first = layout.index(group.source[0])
        if layout[first : first + len(group.source)] == group.source:
            continue
        last = max(layout.index(axis) for axis in group.source)
        before = [axis for axis in layout[:last] if axis not in group.source]
        after = [axis for axis in layout[last:] if axis not in group.source]
        # What is moved anyway is moved behind the rows.
        layout = (GRID, *(axis for axis in (*before, *group.source, *after) if axis != GRID))
    return layout


def _renamed(layout: Layout, groups: list[_Group]) -> Layout:
    targets = {group.source[0]: group.target for group in groups}
    followers = {axis for group in groups for axis in group.source[1:]}
    result: list[int] = []
    for axis in layout:
        if axis == GRID:
            result.append(GRID)
        elif axis not in followers:
            result.extend(targets[axis])
    return tuple(result)
