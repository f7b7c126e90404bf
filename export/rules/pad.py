"""Padding of grid axes makes a new grid whose outer rows read the pad row, or an inner row for edge, reflect and wrap.

Padding of other axes, such as values with a one behind them in linear attention, works on every row alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import onnx_ir as ir

from retouch.export.lattice import Fact
from retouch.export.layout import GRID
from retouch.export.model_shapes import attribute, constant, shape_of
from retouch.export.rules._rule import rule
from retouch.export.rules.arrange import emit_taken, taken
from retouch.export.rules.concat_split import with_axes

if TYPE_CHECKING:
    from retouch.export.analysis import Facts
    from retouch.export.emit import EditGraph

__all__ = ["Pad"]


@rule("Pad")
class Pad:
    """Constant amounts along the grid's axes only, where negative ones crop, or along other axes only."""

    def transfer(self, node: ir.Node, facts: Facts) -> list[Fact] | str:
        """Rows of the padded grid, or of the same one if it is not padded."""
        rows, pads = facts.rows(node.inputs[0]), _pads(node)
        if rows is None or pads is None:
            return "its amounts are not constant"
        if not any(any(pads[axis]) for axis in rows.axes):
            return [rows]
        if any(axis not in rows.axes and any(pair) for axis, pair in enumerate(pads)):
            return "it pads the grid and batch or channels at once"
        if len(node.inputs) > 2 and node.inputs[2] is not None and constant(node.inputs[2]) is None:
            return "its pad value is not constant"
        found = taken(rows, _picks(node), facts.grids)
        return found if isinstance(found, str) else [found]

    def emit(self, node: ir.Node, graph: EditGraph) -> None:
        """One gathered row per row, or the same operator on the other axes."""
        source, output = node.inputs[0], node.outputs[0]
        assert source is not None
        pads = _pads(node)
        assert pads is not None
        if graph.facts.rows(source) == graph.facts.rows(output):
            _emit_beside_rows(node, pads, graph)
            return
        value = constant(node.inputs[2]) if len(node.inputs) > 2 else None
        pad = 0.0 if value is None else float(value.reshape(()))
        graph.set_rows(output, *emit_taken(source, output, _picks(node), graph, pad))


def _picks(node: ir.Node) -> dict[int, list[int]]:
    """What every position of the padded axes reads."""
    pads, mode = _pads(node), str(attribute(node, "mode", "constant"))
    assert pads is not None
    return {
        axis: [_source(i - begin, size, mode) for i in range(begin + size + end)]
        for axis, (size, (begin, end)) in enumerate(zip(shape_of(node.inputs[0]), pads, strict=True))
        if (begin, end) != (0, 0)
    }


def _emit_beside_rows(node: ir.Node, pads: list[tuple[int, int]], graph: EditGraph) -> None:
    source = node.inputs[0]
    assert source is not None
    layout = with_axes(graph.rows_layout(source), tuple(axis for axis, pair in enumerate(pads) if any(pair)))
    amounts = [(0, 0) if axis == GRID else pads[axis] for axis in layout]
    padded = [begin for begin, _ in amounts] + [end for _, end in amounts]
    value = graph.whole(node.inputs[2]) if len(node.inputs) > 2 else None
    inputs = [graph.rows_in(source, layout), graph.ints(padded), value]
    graph.set_rows(node.outputs[0], graph.clone(node, inputs[: 2 + (value is not None)])[0], layout)


def _source(position: int, size: int, mode: str) -> int:
    if 0 <= position < size:
        return position
    if mode == "edge":
        return min(max(position, 0), size - 1)
    if mode == "wrap":
        return position % size
    if mode == "reflect":
        period = max(2 * size - 2, 1)
        position %= period
        return min(position, period - position)
    return -1


def _pads(node: ir.Node) -> list[tuple[int, int]] | None:
    """Begin and end amount of every axis."""
    rank = len(shape_of(node.inputs[0]))
    amounts = constant(node.inputs[1])
    axes = list(range(rank))
    if len(node.inputs) > 3 and node.inputs[3] is not None:
        given = constant(node.inputs[3])
        if given is None:
            return None
        axes = [int(axis) % rank for axis in given]
    if amounts is None:
        return None
    pads = [(0, 0)] * rank
    for i, axis in enumerate(axes):
        pads[axis] = (int(amounts[i]), int(amounts[i + len(axes)]))
    return pads
