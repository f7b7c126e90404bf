"""The Attention operator: queries of the active rows against all keys and values, recomputed ones merged in."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import onnx_ir as ir

from retouch.export.lattice import Fact, Grid, Rows
from retouch.export.layout import GRID, Layout
from retouch.export.model_shapes import attribute, dtype_of, shape_of
from retouch.export.rules._rule import rule

if TYPE_CHECKING:
    from retouch.export.analysis import Facts
    from retouch.export.emit import EditGraph

__all__ = ["Attention"]


@rule("Attention")
class Attention:
    """Without past keys. A causal mask becomes an explicit one, for an edit's queries are not the first ones."""

    def transfer(self, node: ir.Node, facts: Facts) -> list[Fact] | str:
        """The rows of the query."""
        query = node.inputs[0]
        rows, rank = facts.rows(query), len(shape_of(query))
        if rows is None or rows.axes != (rank - 2,):
            return "its query carries no rows on the sequence axis"
        if any(attribute(node, name, -1) != -1 for name in ("left_window_size", "right_window_size")):
            return "a window of attention is not supported"
        if attribute(node, "is_causal", 0) and shape_of(query)[-2] != shape_of(node.inputs[1])[-2]:
            return "is_causal with other numbers of queries and keys is not supported"
        if any(value is not None for value in node.inputs[4:]) or len(node.outputs) > 1:
            return "past keys and further outputs are not supported"
        mask = _mask_of(node)
        masked = facts.rows(mask)
        if mask is not None and masked is not None and masked.axes not in _sequence_axes(mask):
            return "its mask carries rows on another axis than those of queries and keys"
        return [Rows(rows.grid, rows.axes)]

    def emit(self, node: ir.Node, graph: EditGraph) -> None:
        """The same operator on the active query rows."""
        if graph.attend(node):
            return
        query, output = node.inputs[0], node.outputs[0]
        assert query is not None
        rank, rows = len(shape_of(query)), graph.facts.rows(output)
        assert rows is not None
        layout: Layout = (*range(rank - 2), GRID, rank - 1)
        inputs = [graph.rows_in(query, layout), graph.whole(node.inputs[1]), graph.whole(node.inputs[2])]
        mask = _mask(node, rows.grid, graph)
        if attribute(node, "is_causal", 0):
            mask = _causal(node, mask, rows.grid, graph)
            inputs.append(mask)
            result = graph.clone(node, inputs, is_causal=0)[0]
        else:
            result = graph.clone(node, inputs if mask is None else [*inputs, mask])[0]
        graph.set_rows(output, result, layout)


def _mask_of(node: ir.Node) -> ir.Value | None:
    return node.inputs[3] if len(node.inputs) > 3 else None


def _sequence_axes(mask: ir.Value) -> tuple[tuple[int, ...], ...]:
    rank = len(shape_of(mask))
    return (rank - 2,), (rank - 1,)


def _mask(node: ir.Node, grid: Grid, graph: EditGraph) -> ir.Value | None:
    """The mask of the active queries against all keys."""
    mask = _mask_of(node)
    if mask is None:
        return None
    rank, carried = len(shape_of(mask)), graph.facts.rows(mask)
    if carried is not None and carried.axes == (rank - 2,):
        return graph.rows_in(mask, (*range(rank - 2), GRID, rank - 1))
    whole = graph.whole(mask)
    if shape_of(mask)[rank - 2] == 1:
        return whole
    return graph.op("Gather", [whole, graph.row_index(grid)], {"axis": rank - 2})


def _causal(node: ir.Node, mask: ir.Value | None, grid: Grid, graph: EditGraph) -> ir.Value:
    """The mask, and nothing behind a query's own position."""
    keys = graph.constant(np.arange(grid.size, dtype=np.int64))
    positions = graph.op("Unsqueeze", [graph.row_index(grid), graph.ints([1])])
    allowed = graph.op("GreaterOrEqual", [positions, keys])
    given = _mask_of(node)
    if mask is None or given is None:
        return allowed
    if dtype_of(given) == ir.DataType.BOOL:
        return graph.op("And", [allowed, mask])
    lowest = graph.constant(np.array(-np.inf, dtype=dtype_of(given).numpy()))
    return graph.op("Where", [allowed, mask, lowest])
