"""A graph with some of its outputs.

ONNX Runtime computes a whole graph whatever outputs are asked for: ``RunOptions.only_execute_path_to_fetches``
has an effect only in its training builds. Work that a caller does not want is therefore cut off before loading.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import onnx

from retouch.bundle import reads
from retouch.errors import BundleError


def prune_file(file: Path, outputs: Sequence[str] | None) -> onnx.ModelProto:
    """The model in that file with those outputs, inner values too, and what they need; weights stay references.

    ``None`` means all outputs.
    """
    model = onnx.load(file, load_external_data=False)
    if outputs is None:
        return model
    present = _by_name(model.graph)
    missing = [name for name in outputs if name not in present]
    if missing:
        outputs_there = sorted(output.name for output in model.graph.output)
        raise BundleError(
            f"Expected {file.name} to have the outputs {', '.join(missing)}, got {', '.join(outputs_there)}. "
            "The bundle's manifest does not describe its graphs; export the model again."
        )
    prune_graph(model.graph, outputs)
    return model


def prune_graph(graph: onnx.GraphProto, outputs: Sequence[str]) -> None:
    """Cuts a graph, in place, to those outputs, in that order, and the nodes, inputs and initializers they need."""
    needed = set(outputs)
    nodes: list[onnx.NodeProto] = []
    for node in reversed(graph.node):
        if not needed.isdisjoint(node.output):
            nodes.append(node)
            needed.update(reads(node))
    by_name = _by_name(graph)
    wanted = [by_name[name] for name in outputs]
    _cut(graph.node, nodes[::-1])
    _cut(graph.input, [value for value in graph.input if value.name in needed])
    _cut(graph.initializer, [tensor for tensor in graph.initializer if tensor.name in needed])
    _cut(graph.sparse_initializer, [tensor for tensor in graph.sparse_initializer if tensor.values.name in needed])
    _cut(graph.value_info, [value for value in graph.value_info if value.name in needed])
    del graph.output[:]
    graph.output.extend(wanted)


def _cut(field: Any, kept: Sequence[object]) -> None:  # noqa: ANN401  (protobuf names no type for repeated fields)
    """Leaves those of a field's messages, which are in its order; what is whole is not copied."""
    if len(kept) < len(field):
        del field[:]
        field.extend(kept)


def _by_name(graph: onnx.GraphProto) -> dict[str, onnx.ValueInfoProto]:
    """The outputs, and the inner values whose type the file tells."""
    return {value.name: value for value in (*graph.value_info, *graph.output)}
