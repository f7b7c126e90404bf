"""Who uses a value."""

from __future__ import annotations

import onnx_ir as ir

__all__ = ["is_per_column", "is_rows", "other_operand", "sole_user"]


def sole_user(value: ir.Value) -> ir.Node | None:
    """The only use of a value, if it has one and is no output of the graph."""
    uses = list(value.uses())
    return uses[0].node if len(uses) == 1 and not value.is_graph_output() else None


def other_operand(node: ir.Node, value: ir.Value) -> ir.Value | None:
    """The other operand of a binary node that has the value as one."""
    if len(node.inputs) != 2 or node.inputs[0] is node.inputs[1]:
        return None
    return node.inputs[1] if node.inputs[0] is value else node.inputs[0]


def is_rows(value: ir.Value | None) -> bool:
    """Whether a value is a float32 matrix whose number of columns is known."""
    if value is None or value.shape is None or value.dtype != ir.DataType.FLOAT or len(value.shape) != 2:
        return False
    return isinstance(value.shape[1], int)


def is_per_column(value: ir.Value | None, columns: int) -> bool:
    """Whether a value holds one number for every column, in its last axis."""
    if value is None or value.shape is None or value.dtype != ir.DataType.FLOAT or len(value.shape) not in (1, 2):
        return False
    return value.shape[-1] == columns and all(size == 1 for size in value.shape[:-1])
