"""Casts between the parts of a graph that compute in different floating-point types."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

import onnx_ir as ir

__all__ = ["bridge_inputs", "bridge_nodes", "bridge_outputs"]

_SINGLE = ir.DataType.FLOAT


def bridge_nodes(graph: ir.Graph, single: AbstractSet[ir.Node], other: ir.DataType) -> None:
    """Casts what nodes in single precision read of another type, and what other nodes and callers read of theirs."""
    read = dict.fromkeys(
        value for node in single for value in node.inputs if value is not None and value.dtype == other
    )
    made = dict.fromkeys(value for node in single for value in node.outputs if value.dtype == _SINGLE)
    for value in read:
        _redirect(value, _cast(graph, value, _SINGLE), {user for user, _ in value.uses()} & single)
    for value in made:
        others = {user for user, _ in value.uses()} - single
        if value.is_graph_output():
            _replace_output(graph, value, other)
        if others:
            _redirect(value, _cast(graph, value, other), others)


def bridge_inputs(graph: ir.Graph, single: AbstractSet[ir.Node], other: ir.DataType) -> None:
    """Casts inputs in single precision for the nodes that read another type."""
    for value in graph.inputs:
        others = {user for user, _ in value.uses()} - single
        if value.dtype == _SINGLE and others:
            _redirect(value, _cast(graph, value, other), others)


def bridge_outputs(graph: ir.Graph, other: ir.DataType) -> None:
    """Has outputs of another type in single precision, under their names."""
    for value in list(graph.outputs):
        if value.dtype == other:
            _replace_output(graph, value, _SINGLE)


def _replace_output(graph: ir.Graph, value: ir.Value, dtype: ir.DataType) -> None:
    """Lets an output be a cast of a value, which takes another name."""
    name = value.name
    cast = _cast(graph, value, dtype)
    value.name = f"{name}_before_{dtype.name.lower()}"
    cast.name = name
    for place, output in enumerate(graph.outputs):
        if output is value:
            graph.outputs[place] = cast


def _redirect(value: ir.Value, cast: ir.Value, users: AbstractSet[ir.Node]) -> None:
    for user, place in list(value.uses()):
        if user in users:
            user.replace_input_with(place, cast)


def _cast(graph: ir.Graph, value: ir.Value, dtype: ir.DataType) -> ir.Value:
    node = ir.node("Cast", [value], {"to": int(dtype)}, name=f"{value.name}_to_{dtype.name.lower()}")
    made = node.outputs[0]
    made.name, made.shape, made.type = f"{node.name}_out", value.shape, ir.TensorType(dtype)
    producer = value.producer()
    if producer is not None:
        graph.insert_after(producer, node)
    else:
        graph.insert_before(graph[0], node)
    return made
