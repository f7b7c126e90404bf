"""The Attention operator: queries of the active rows against all keys and values, recomputed ones merged in."""

from __future__ import annotations

from typing import TYPE_CHECKING

import onnx_ir as ir

from retouch.export.lattice import Fact, Rows
from retouch.export.layout import GRID, Layout
from retouch.export.model_shapes import attribute, shape_of
from retouch.export.rules._rule import rule

if TYPE_CHECKING:
    from retouch.export.analysis import Facts
    from retouch.export.emit import EditGraph

__all__ = ["Attention"]


@rule("Attention")
class Attention:
    """Without past keys and without the causal shortcut, whose row numbers an edit does not keep."""

    def transfer(self, node: ir.Node, facts: Facts) -> list[Fact] | str:
        """The rows of the query."""
        query = node.inputs[0]
        rows, rank = facts.rows(query), len(shape_of(query))
        if rows is None or rows.axes != (rank - 2,):
            return "its query carries no rows on the sequence axis"
        if attribute(node, "is_causal", 0):
            return "is_causal counts query rows; give an explicit mask"
        if any(value is not None for value in node.inputs[4:]) or len(node.outputs) > 1:
            return "past keys and further outputs are not supported"
        mask = node.inputs[3] if len(node.inputs) > 3 else None
        if mask is not None and facts.rows(mask) is not None:
            return "its mask carries rows"
        return [Rows(rows.grid, rows.axes)]

    def emit(self, node: ir.Node, graph: EditGraph) -> None:
        """The same operator on the active query rows."""
        query, output = node.inputs[0], node.outputs[0]
        assert query is not None
        rank = len(shape_of(query))
        layout: Layout = (*range(rank - 2), GRID, rank - 1)
        inputs = [graph.rows_in(query, layout), graph.whole(node.inputs[1]), graph.whole(node.inputs[2])]
        mask = node.inputs[3] if len(node.inputs) > 3 else None
        if mask is not None:
            inputs.append(self._mask(mask, output, graph))
        graph.set_rows(output, graph.clone(node, inputs)[0], layout)

    def _mask(self, mask: ir.Value, output: ir.Value, graph: EditGraph) -> ir.Value | None:
        rank = len(shape_of(mask))
        rows = graph.facts.rows(output)
        assert rows is not None
        if shape_of(mask)[rank - 2] == 1:
            return graph.whole(mask)
        return graph.op("Gather", [graph.whole(mask), graph.row_index(rows.grid)], {"axis": rank - 2})
