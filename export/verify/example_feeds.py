"""Plausible feeds for a model whose documentation the exporter does not have."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx_ir as ir

from retouch.errors import ExportError
from retouch.export.model_shapes import attribute, dtype_of, shape_of

__all__ = ["example_feeds"]

_DEFAULT_RANGE = 8


def example_feeds(graph: ir.Graph, editable: str, seed: int, given: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """One array per input: the given ones, else standard normal for the editable input, small positive conditions.

    Integers stay below the size of the tables they index.

    Raises:
        ExportError: a given feed is no input's, has another shape than the input or no lossless form in its type.
    """
    unknown = sorted(set(given) - {str(value.name) for value in graph.inputs})
    if unknown:
        names = ", ".join(str(value.name) for value in graph.inputs)
        raise ExportError(
            f"The example feeds name {unknown}, but the model's inputs are {names}. Name feeds like those."
        )
    generator = np.random.default_rng(seed)
    feeds = {}
    for value in graph.inputs:
        name = str(value.name)
        feeds[name] = _given(value, given[name]) if name in given else _made(value, generator, normal=name == editable)
    return feeds


def _given(value: ir.Value, feed: np.ndarray) -> np.ndarray:
    shape, dtype = shape_of(value), dtype_of(value).numpy()
    if feed.shape != shape:
        raise ExportError(
            f"The example feed {value.name!r} has shape {feed.shape}, expected {shape}, the shape the model is "
            "exported for. Reshape the feed, or export for its shape."
        )
    if feed.dtype == dtype:
        return feed
    converted = feed.astype(dtype) if feed.dtype.kind in "iuf" and dtype.kind in "iuf" else None
    if converted is None or not np.array_equal(converted.astype(feed.dtype), feed):
        raise ExportError(
            f"The example feed {value.name!r} has elements of type {feed.dtype}, expected {dtype}, and loses something "
            f"in it. Convert it: feed.astype({dtype.name!r})."
        )
    return converted


def _made(value: ir.Value, generator: np.random.Generator, *, normal: bool) -> np.ndarray:
    shape, dtype = shape_of(value), dtype_of(value)
    if dtype == ir.DataType.BOOL:
        return np.ones(shape, dtype=bool)
    if dtype.is_integer():
        return generator.integers(0, _table_size(value) or _DEFAULT_RANGE, shape).astype(dtype.numpy())
    if normal or len(shape) > 1:
        return generator.standard_normal(shape).astype(dtype.numpy())
    return generator.uniform(0.1, 1.0, shape).astype(dtype.numpy())


def _table_size(value: ir.Value) -> int | None:
    """The smallest axis that an integer input indexes through Gather, looking past casts and reshapes."""
    sizes = []
    for node, index in value.uses():
        if node.op_type == "Gather" and index == 1:
            axis = int(attribute(node, "axis", 0))
            sizes.append(shape_of(node.inputs[0])[axis])
        elif node.op_type in ("Cast", "Reshape", "Unsqueeze", "Squeeze", "Identity", "Expand"):
            found = _table_size(node.outputs[0])
            sizes += [found] if found is not None else []
    return min(sizes, default=None)
