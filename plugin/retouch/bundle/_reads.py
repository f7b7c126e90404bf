"""What the nodes of a graph read."""

from __future__ import annotations

from collections.abc import Iterator

import onnx

_GRAPHS = (onnx.AttributeProto.GRAPH, onnx.AttributeProto.GRAPHS)


def reads(node: onnx.NodeProto) -> Iterator[str]:
    """The names a node reads, those that its subgraphs capture included (and, harmlessly, their inner names)."""
    yield from node.input
    for attribute in node.attribute:
        # Few have subgraphs; asking the others for theirs takes longer than all the rest.
        if attribute.type in _GRAPHS:
            for subgraph in (attribute.g, *attribute.graphs):
                yield from (output.name for output in subgraph.output)
                for inner in subgraph.node:
                    yield from reads(inner)
