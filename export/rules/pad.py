"""Padding of grid axes makes a new grid whose outer rows read the pad row, or an inner row for edge, reflect and wrap.

Padding of other axes, such as values with a one behind them in linear attention, works on every row alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import onnx_ir as ir

from retouch.bundle import NeighbourhoodSpec
from retouch.export.lattice import Fact, Rows
from retouch.export.layout import GRID
from retouch.export.model_shapes import attribute, constant, shape_of
from retouch.export.rules._neighbourhood import channels_last, gather_rows, spatial_rows
from retouch.export.rules._rule import rule
from retouch.export.rules.concat_split import with_axes

if TYPE_CHECKING:
    from retouch.export.analysis import Facts
    from retouch.export.emit import EditGraph

__all__ = ["Pad"]


@rule("Pad")
class Pad:
    """Constant amounts along the grid's axes only, not negative, or along other axes only."""

    def transfer(self, node: ir.Node, facts: Facts) -> list[Fact] | str:
        """Rows of the padded grid, or of the same one if it is not padded."""
        pads, carried = _pads(node), facts.rows(node.inputs[0])
        if pads is None:
            return "its amounts are not constant"
        if carried is not None and not any(any(pads[axis]) for axis in carried.axes):
            return [carried]
        rows = spatial_rows(node, facts)
        if isinstance(rows, str):
            return rows
        if any(begin or end for begin, end in pads[:2]) or any(min(pair) < 0 for pair in pads):
            return "it pads batch or channels, or crops"
        if len(node.inputs) > 2 and node.inputs[2] is not None and constant(node.inputs[2]) is None:
            return "its pad value is not constant"
        return [Rows(facts.grids.get(shape_of(node.outputs[0])[2:]), rows.axes)]

    def emit(self, node: ir.Node, graph: EditGraph) -> None:
        """One gathered row per row, or the same operator on the other axes."""
        source, output = node.inputs[0], node.outputs[0]
        assert source is not None
        before, after = graph.facts.rows(source), graph.facts.rows(output)
        assert before is not None and after is not None
        pads = _pads(node)
        assert pads is not None
        if before == after:
            _emit_beside_rows(node, pads, graph)
            return
        mode = str(attribute(node, "mode", "constant"))
        sources = tuple(
            tuple((_source(i - begin, size, mode),) for i in range(begin + size + end))
            for size, (begin, end) in zip(before.grid.dims, pads[2:], strict=True)
        )
        name = f"{before.grid.id}_{after.grid.id}_pad_{mode}" + "".join(f"_{begin}" for begin, _ in pads[2:])
        spec = NeighbourhoodSpec(name, before.grid.id, after.grid.id, sources, None, (1,) * len(sources))
        value = constant(node.inputs[2]) if len(node.inputs) > 2 else None
        rows = gather_rows(graph, source, spec, pad=0.0 if value is None else float(value.reshape(())))
        graph.set_rows(output, graph.op("Squeeze", [rows, graph.ints([1])]), channels_last(output))


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
