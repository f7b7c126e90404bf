"""Sequences in which the rows of a grid stand beside tokens of something else, as in joint attention of image and text.

Concat along the tokens makes such a sequence, Slice and Split take it apart again. In between it is a grid of its own,
the *joint grid*. What becomes of the other tokens in an edit is a policy of the export: they are computed anew, all of
them, or keep what the base run computed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import onnx_ir as ir

from retouch.export.lattice import Beside, Fact, Full, Rows, Statistic
from retouch.export.layout import GRID, Layout
from retouch.export.model_shapes import shape_of

if TYPE_CHECKING:
    from retouch.export.analysis import Facts
    from retouch.export.emit import EditGraph

__all__ = ["emit_joined", "emit_part", "joined", "part_of"]

_END = np.iinfo(np.int64).max


def joined(values: Sequence[ir.Value | None], axis: int, facts: Facts) -> list[Fact] | str:
    """The rows of a concatenation along the one axis that carries them, or why it has none."""
    carrying = [number for number, value in enumerate(values) if facts.rows(value) is not None]
    if len(carrying) != 1:
        return "it concatenates rows with rows along the grid"
    place = carrying[0]
    rows = facts.rows(values[place])
    if rows is None or not rows.flat:
        return "it concatenates along one of several axes of the grid"
    known = [facts.of(value) for value in values]
    if any(isinstance(fact, Full) or (isinstance(fact, Statistic) and not facts.grids.recomputed) for fact in known):
        return "it concatenates the grid with what is computed whole"
    sizes = [shape_of(value)[axis] for value in values]
    return [Rows(facts.grids.join(rows.grid, sum(sizes[:place]), sum(sizes[place + 1 :])), rows.axes)]


def part_of(rows: Rows, start: int, stop: int) -> Fact | str:
    """What a part of a joint sequence is: its grid's rows, or tokens beside them; or why it is neither."""
    joint = rows.grid.joint
    if joint is None:
        return "it slices the grid"
    last = joint.before + joint.grid.size
    if (start, stop) == (joint.before, last):
        return Rows(joint.grid, rows.axes)
    if stop <= joint.before or start >= last:
        return Beside(frozen=not joint.recomputed)
    return "it cuts a joint sequence elsewhere than where it was joined"


def emit_joined(node: ir.Node, graph: EditGraph) -> None:
    """The active rows, and if the other tokens are computed anew, those around them."""
    output = node.outputs[0]
    rows = graph.facts.rows(output)
    assert rows is not None and rows.grid.joint is not None
    driver = next(value for value in node.inputs if value is not None and graph.facts.rows(value) is not None)
    layout = graph.rows_layout(driver)
    tensor = graph.rows_in(driver, layout)
    if rows.grid.joint.recomputed:
        parts = [
            tensor if value is driver else _tokens(value, rows, layout, graph)
            for value in node.inputs
            if value is not None
        ]
        tensor = graph.op("Concat", parts, {"axis": layout.index(GRID)})
    graph.set_rows(output, tensor, layout)


def _tokens(value: ir.Value, rows: Rows, layout: Layout, graph: EditGraph) -> ir.Value:
    """A value without rows in the layout of rows, its tokens where their row axis is."""
    axes = tuple(rows.axes[0] if axis == GRID else axis for axis in layout)
    return graph.permuted_whole(value, axes)


def emit_part(source: ir.Value, output: ir.Value, start: int, stop: int, graph: EditGraph) -> None:
    """The active rows of the grid out of those of a joint grid, or the tokens in a range beside it."""
    rows = graph.facts.rows(source)
    assert rows is not None and rows.grid.joint is not None
    joint, layout = rows.grid.joint, graph.rows_layout(source)
    tensor, taken = graph.rows_in(source, layout), graph.facts.rows(output)
    if taken is not None:
        if joint.recomputed:
            tensor = _sliced(tensor, layout.index(GRID), joint.before, -joint.after or _END, graph)
        graph.set_rows(output, tensor, layout)
    elif joint.recomputed:
        if start >= joint.before:  # behind the rows, whose number is not known: counted from the end
            start, stop = start - rows.grid.size, (stop - rows.grid.size) or _END
        tensor = _sliced(tensor, layout.index(GRID), start, stop, graph)
        graph.set_whole(output, _in_base_shape(tensor, layout, rows, shape_of(output), graph))


def _sliced(tensor: ir.Value, axis: int, start: int, stop: int, graph: EditGraph) -> ir.Value:
    return graph.op("Slice", [tensor, graph.ints([start]), graph.ints([stop]), graph.ints([axis])])


def _in_base_shape(tensor: ir.Value, layout: Layout, rows: Rows, shape: tuple[int, ...], graph: EditGraph) -> ir.Value:
    order = [rows.axes[0] if axis == GRID else axis for axis in layout]
    perm = [order.index(axis) for axis in sorted(order)]
    if perm != sorted(perm):
        tensor = graph.op("Transpose", [tensor], {"perm": perm})
    if len(order) != len(shape):
        tensor = graph.op("Reshape", [tensor, graph.ints(shape)])
    return tensor
