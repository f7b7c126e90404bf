"""Which reshapes cut the grid in a way that something behind them cannot live with."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import onnx_ir as ir

if TYPE_CHECKING:
    from retouch.export.analysis import Facts

__all__ = ["cuts_before"]


def cuts_before(refused: Iterable[ir.Node], facts: Facts) -> frozenset[ir.Node]:
    """The reshapes that the views of refused nodes' operands come from."""
    waiting = [value for node in refused for value in node.inputs if value is not None]
    seen: set[ir.Value] = set()
    found = set()
    while waiting:
        value = waiting.pop()
        node, rows = value.producer(), facts.rows(value)
        if value in seen or node is None or rows is None or rows.grid.view is None:
            continue
        seen.add(value)
        if node.op_type == "Reshape" and len(rows.axes) > len(_axes(node.inputs[0], facts)):
            found.add(node)
        waiting += [operand for operand in node.inputs if operand is not None]
    return frozenset(found)


def _axes(value: ir.Value | None, facts: Facts) -> tuple[int, ...]:
    rows = facts.rows(value)
    return () if rows is None else rows.axes
