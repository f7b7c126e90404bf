"""What rules tell an edit graph of axes that count all rows of a grid, as the scores of attention have them.

An edit graph of one edit merges recomputed rows into the cached ones, so such an axis is as long as the grid and there
is nothing to do. A stacked graph (``stack.py``) overrides these methods.
"""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from retouch.export.lattice import Grid
from retouch.export.layout import Layout

# The arguments are for the graphs that override these methods.
# ruff: noqa: ARG002

__all__ = ["Columns"]


class Columns:
    """The columns of an edit graph of one edit: those of the grid."""

    def enter(self, node: ir.Node) -> None:
        """Called before a node is emitted."""

    def attend(self, node: ir.Node) -> bool:
        """Whether the graph emitted an Attention node itself."""
        return False

    def totalled(self, node: ir.Node) -> None:
        """Called with a node that sums over all rows of a grid."""

    def multiplied(self, result: ir.Value, axis: int, grid: Grid) -> None:
        """Called with a product of rows with all rows of a grid, and the axis that counts the latter."""

    def summed(self, operand: ir.Value, axis: int, grid: Grid) -> None:
        """Called with an operand that is summed over an axis, against all rows of a grid."""

    def lined_up(self, node: ir.Node, inputs: Sequence[ir.Value | None], layout: Layout) -> Sequence[ir.Value | None]:
        """The operands of an elementwise operator, whose result has that layout."""
        return inputs

    def owners(self, grid: Grid) -> Sequence[ir.Value]:
        """The inputs that say whose row of a grid every row is; none where all are one edit's."""
        return ()

    def scored(self, node: ir.Node, scores: ir.Value, layout: Layout) -> ir.Value:
        """The operand of a softmax, which has that layout."""
        return scores
