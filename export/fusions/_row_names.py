"""Gives numbers of rows back the names that shape inference loses behind a reshape with -1."""

from __future__ import annotations

import math

import onnx_ir as ir

from retouch.export.model_shapes import attribute, normal_axis
from retouch.export.ops._domain import DOMAIN
from retouch.export.ops.tails import BATCH

__all__ = ["name_rows"]

_ELEMENTWISE = ("Add", "Sub", "Mul", "Div", "Sigmoid", "Tanh", "LayerNormalization", "Softmax")
_ALONG_AN_AXIS = ("Split", "Concat")
_ROW_OPERAND = (
    ("EditConv", 4),
    ("DepthwiseEditConv", 4),
    ("GroupedEditConv", 4),
    ("EditGroupNorm", 0),
    ("StackedGroupNorm", 0),
    ("RowLinear", 0),
    ("Rows", 0),
    ("EditAttention", 0),
    ("StackedAttention", 0),
)
_UNNAMED = "unk__"


def name_rows(graph: ir.Graph) -> None:
    """Names the first size of every value after that of an operand that has as many rows."""
    for node in graph:
        for value in node.outputs:
            if value.shape is None or not len(value.shape) or not _is_unnamed(value.shape[0]):
                continue
            sizes = [source.shape[0] for source in _alike(node, value) if source.shape is not None]
            name = next((size for size in sizes if not _is_unnamed(size)), next(iter(sizes), None))
            if name is not None:
                value.shape = ir.Shape([name, *value.shape[1:]])


def _is_unnamed(size: int | ir.SymbolicDim) -> bool:
    return not isinstance(size, int) and (size.value is None or size.value.startswith(_UNNAMED))


def _alike(node: ir.Node, value: ir.Value) -> list[ir.Value]:
    """Operands of a node that have as many rows as its result."""
    operands = [v for v in node.inputs if v is not None and v.shape is not None and len(v.shape)]
    if node.domain == DOMAIN:
        op_type = node.op_type.removeprefix(BATCH)
        place = next((place for name, place in _ROW_OPERAND if op_type.startswith(name)), None)
        source = None if place is None else node.inputs[place]
        return [] if source is None else [source]
    if node.op_type == "Reshape":
        return operands[:1] if operands and _width(operands[0]) == _width(value) is not None else []
    assert value.shape is not None
    rank = len(value.shape)
    # Along the rows themselves, as joint sequences are put together, results have more rows or fewer.
    beside = node.op_type in _ALONG_AN_AXIS and normal_axis(int(attribute(node, "axis", 0)), rank) != 0
    if node.op_type not in _ELEMENTWISE and not beside:
        return []
    return [v for v in operands if v.shape is not None and len(v.shape) == rank and not isinstance(v.shape[0], int)]


def _width(value: ir.Value) -> int | None:
    """The number of elements of a row."""
    assert value.shape is not None
    sizes = [size for size in value.shape[1:] if isinstance(size, int)]
    return math.prod(sizes) if len(sizes) + 1 == len(value.shape) else None
