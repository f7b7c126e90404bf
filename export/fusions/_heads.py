"""Rows of heads [M, (samples,) heads, depth] as the rows [M, heads * depth] that they are in memory."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from retouch.export.fusions._uses import is_rows

__all__ = ["joined_heads", "joined_samples", "use_joined"]


def joined_heads(graph: ir.Graph, value: ir.Value, before: ir.Node) -> ir.Value:
    """Rows of heads as rows: those that they were split from, or reshaped ones in front of a node."""
    width = _width(value)
    source = _reshaped(value)
    if source is None or not is_rows(source) or _width(source) != width:
        source = value
    if source.shape is not None and len(source.shape) == 2:
        return source
    return _joined(graph, source, [width], before)


def joined_samples(graph: ir.Graph, value: ir.Value, before: ir.Node) -> ir.Value:
    """Rows of heads without an axis of samples: the heads of all samples side by side."""
    assert value.shape is not None
    if len(value.shape) == 3:
        return value
    samples, heads, depth = _sizes(value)
    return _joined(graph, value, [samples * heads, depth], before)


def use_joined(graph: ir.Graph, made: ir.Node, old: ir.Value) -> None:
    """Puts the rows that a node makes in the place of rows of heads: where those were joined, and else split again."""
    assert old.shape is not None
    rows, width = _typed(made.outputs[0], old, [_width(old)]), _width(old)
    for user in [use.node for use in old.uses() if use.node.op_type == "Reshape"]:
        joined = user.outputs[0]
        if (
            is_rows(joined)
            and joined.shape is not None
            and list(joined.shape[1:]) == [width]
            and not joined.is_graph_output()
        ):
            joined.replace_all_uses_with(rows)
            graph.remove(user, safe=True)
    if not old.uses() and not old.is_graph_output():
        rows.name = old.name
        return
    rows.name = f"{old.name}_joined"
    split = ir.Node("", "Reshape", [rows, _shape(graph, [0, *_sizes(old)])], name=f"{old.name}_split")
    graph.insert_after(made, split)
    value = _typed(split.outputs[0], old, _sizes(old))
    value.name = old.name
    old.replace_all_uses_with(value, replace_graph_outputs=True)


def _joined(graph: ir.Graph, value: ir.Value, sizes: list[int], before: ir.Node) -> ir.Value:
    node = ir.Node("", "Reshape", [value, _shape(graph, [0, *sizes])], name=f"{value.name}_joined")
    graph.insert_before(before, node)
    return _typed(node.outputs[0], value, sizes)


def _width(value: ir.Value) -> int:
    return math.prod(_sizes(value))


def _sizes(value: ir.Value) -> list[int]:
    """The axes behind the rows, which are known."""
    assert value.shape is not None
    return [size for size in value.shape[1:] if isinstance(size, int)]


def _reshaped(value: ir.Value) -> ir.Value | None:
    producer = value.producer()
    return producer.inputs[0] if producer is not None and producer.op_type == "Reshape" else None


def _shape(graph: ir.Graph, sizes: Sequence[int]) -> ir.Value:
    """A shape as an initializer; zero stands for as many rows as before."""
    name = f"rows_of_{'x'.join(map(str, sizes[1:]))}"
    if name not in graph.initializers:
        tensor = ir.Tensor(np.array(sizes, np.int64), name=name)
        graph.register_initializer(
            ir.Value(name=name, type=ir.TensorType(tensor.dtype), shape=ir.Shape([len(sizes)]), const_value=tensor)
        )
    return graph.initializers[name]


def _typed(value: ir.Value, like: ir.Value, sizes: Sequence[int]) -> ir.Value:
    assert like.shape is not None
    value.type, value.shape = like.type, ir.Shape([like.shape[0], *sizes])
    return value
