"""Transposes are free: only the layout changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import onnx_ir as ir

from retouch.export.lattice import Fact, Rows
from retouch.export.layout import GRID
from retouch.export.model_shapes import attribute, shape_of
from retouch.export.rules._rule import rule

if TYPE_CHECKING:
    from retouch.export.analysis import Facts
    from retouch.export.emit import EditGraph

__all__ = ["Transpose", "permute_axes"]


def permute_axes(rows: Rows, perm: tuple[int, ...]) -> Rows:
    """Rows whose axes moved to where a permutation puts them."""
    return Rows(rows.grid, tuple(perm.index(axis) for axis in rows.axes))


@rule("Transpose")
class Transpose:
    """The grid's axes may go anywhere, also apart from each other."""

    def transfer(self, node: ir.Node, facts: Facts) -> list[Fact] | str:
        """The same rows on the permuted axes."""
        rows = facts.rows(node.inputs[0])
        assert rows is not None
        return [permute_axes(rows, _perm(node))]

    def emit(self, node: ir.Node, graph: EditGraph) -> None:
        """Nothing but a new layout."""
        source = node.inputs[0]
        assert source is not None
        emitted, perm = graph.rows(source), _perm(node)
        layout = tuple(axis if axis == GRID else perm.index(axis) for axis in emitted.layout)
        graph.set_rows(node.outputs[0], emitted.value, layout)


def _perm(node: ir.Node) -> tuple[int, ...]:
    rank = len(shape_of(node.inputs[0]))
    return tuple(attribute(node, "perm", tuple(reversed(range(rank)))))
