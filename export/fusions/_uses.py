"""Who uses a value."""

from __future__ import annotations

import onnx_ir as ir

__all__ = ["is_per_column", "is_rows", "other_operand", "sole_user"]


def sole_user(value: ir.Value) -> ir.Node | None:
    """The only use of a value, if it has one and is no output of the graph."""
    uses = list(value.uses())
    return uses[0].node if len(uses) == 1 and not value.is_graph_output() else None


FUSED_TYPES = (ir.DataType.FLOAT, ir.DataType.FLOAT16, ir.DataType.BFLOAT16)
"""What there are kernels for, on one machine or another."""


def other_operand(node: ir.Node, value: ir.Value) -> ir.Value | None:
    """The other operand of a binary node that has the value as one."""
    if len(node.inputs) != 2 or node.inputs[0] is node.inputs[1]:
        return None
    return node.inputs[1] if node.inputs[0] is value else node.inputs[0]


def is_rows(value: ir.Value | None) -> bool:
    """Whether a value is rows [M, C], or [M, B, C] of several samples, all but M known."""
    if value is None or value.shape is None or value.dtype not in FUSED_TYPES or len(value.shape) not in (2, 3):
        return False
    return all(isinstance(size, int) for size in value.shape[1:])


def is_per_column(value: ir.Value | None, rows: ir.Value) -> bool:
    """Whether a value holds one number for every column of rows, in its last axis, perhaps for every sample."""
    if value is None or value.shape is None or value.dtype not in FUSED_TYPES or rows.shape is None:
        return False
    sizes, columns, samples = list(value.shape), rows.shape[-1], list(rows.shape[1:-1])
    if not 1 <= len(sizes) <= len(rows.shape) or sizes[-1] != columns:
        return False
    lead = sizes[:-1]
    return all(size == 1 for size in lead) or (lead[-1:] == samples and all(size == 1 for size in lead[:-1]))
