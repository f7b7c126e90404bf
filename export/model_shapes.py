"""Reading shapes, attributes and constants of onnx-ir objects."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import onnx_ir as ir

__all__ = ["attribute", "constant", "constant_value", "dtype_of", "element_count", "normal_axis", "shape_of"]


def shape_of(value: ir.Value | None) -> tuple[int, ...]:
    """The static shape of a value; clean-up guarantees that it is known."""
    if value is None or value.shape is None:
        raise ValueError(f"value {value.name if value else None!r} has no shape; run the clean-up pass first")
    return tuple(int(dim) for dim in value.shape)  # type: ignore[arg-type]


def element_count(value: ir.Value | None) -> int:
    """Number of elements of a value."""
    return math.prod(shape_of(value))


def dtype_of(value: ir.Value) -> ir.DataType:
    """The element type of a value."""
    if value.dtype is None:
        raise ValueError(f"value {value.name!r} has no element type; run the clean-up pass first")
    return value.dtype


def attribute(node: ir.Node, name: str, default: Any = None) -> Any:  # noqa: ANN401 (an attribute may be anything)
    """The value of a node's attribute: int, float, str, or a tuple of those; ``default`` if absent."""
    found = node.attributes.get(name)
    if found is None:
        return default
    return tuple(found.value) if isinstance(found.value, (list, tuple)) else found.value


def constant(value: ir.Value | None) -> np.ndarray | None:
    """The content of an initializer as an array, ``None`` for anything else."""
    if value is None or value.const_value is None:
        return None
    return value.const_value.numpy()


def normal_axis(axis: int, rank: int) -> int:
    """The non-negative form of an axis."""
    return axis + rank if axis < 0 else axis


def constant_value(name: str, array: np.ndarray) -> ir.Value:
    """An initializer with that name and content, not yet part of a graph."""
    tensor = ir.Tensor(array, name=name)
    return ir.Value(name=name, type=ir.TensorType(tensor.dtype), shape=ir.Shape(array.shape), const_value=tensor)
