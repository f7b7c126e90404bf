"""The RotaryEmbedding operator: every row turned by the angles of its own position."""

from __future__ import annotations

from typing import TYPE_CHECKING

import onnx_ir as ir

from retouch.export.lattice import Fact
from retouch.export.layout import GRID
from retouch.export.model_shapes import shape_of
from retouch.export.rules._rule import rule

if TYPE_CHECKING:
    from retouch.export.analysis import Facts
    from retouch.export.emit import EditGraph

__all__ = ["RotaryEmbedding"]


@rule("RotaryEmbedding")
class RotaryEmbedding:
    """Heads on an axis of their own [B, H, N, D] or folded into the channels [B, N, H D]."""

    def transfer(self, node: ir.Node, facts: Facts) -> list[Fact] | str:
        """The same rows."""
        rows, rank = facts.rows(node.inputs[0]), len(shape_of(node.inputs[0]))
        if rows is None or rows.axes != (rank - 2,):
            return "its first operand carries no rows on the sequence axis"
        return [rows]

    def emit(self, node: ir.Node, graph: EditGraph) -> None:
        """The same operator, with the angles, or the positions that name them, of the active rows."""
        source, cosines, sines = node.inputs[:3]
        assert source is not None
        rank, rows = len(shape_of(source)), graph.facts.rows(source)
        assert rows is not None
        layout = (*range(rank - 2), GRID, rank - 1)
        index = graph.row_index(rows.grid)

        def picked(value: ir.Value | None) -> ir.Value:
            return graph.op("Gather", [graph.whole(value), index], {"axis": 1})

        positions = node.inputs[3] if len(node.inputs) > 3 else None
        angles: list[ir.Value | None]
        if positions is None:
            angles = [picked(cosines), picked(sines)]
        else:
            angles = [graph.whole(cosines), graph.whole(sines), picked(positions)]
        graph.set_rows(node.outputs[0], graph.clone(node, [graph.rows_in(source, layout), *angles])[0], layout)
