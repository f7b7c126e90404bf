"""A graph as a network of TensorRT."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from retouch.errors import BuildError
from retouch.trt_plugins._graphs import LoadedGraph
from retouch.trt_plugins._messages import Messages

__all__ = ["Refusal", "parse", "refusals"]

_SHOWN = 10


@dataclass(frozen=True)
class Refusal:
    """A node that the parser does not take.

    Attributes:
        node: its name.
        op: its operator.
        reason: what the parser says.
    """

    node: str
    op: str
    reason: str

    def __str__(self) -> str:
        return f"{self.op} {self.node!r}: {self.reason}"


def parse(trt: Any, network: Any, logger: Any, graph: LoadedGraph, messages: Messages, name: str) -> None:  # noqa: ANN401
    """Reads a graph into an empty network.

    Raises:
        BuildError: the parser does not take it; lists the nodes.
    """
    parser = trt.OnnxParser(network, logger)
    if parser.parse(graph.model.SerializeToString(), _path(graph)):
        return
    found = refusals(trt, logger, graph) or _refusals(parser)
    shown = "\n  ".join(str(refusal) for refusal in found[:_SHOWN])
    more = f"\n  and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    raise BuildError(
        f"Expected {trt.__name__} {trt.__version__} to take every node of {name}, but it refuses {len(found)}:\n  "
        f"{shown or messages.cause}{more}\nUpdate it, or run the bundle on ONNX Runtime."
    )


def refusals(trt: Any, logger: Any, graph: LoadedGraph) -> list[Refusal]:  # noqa: ANN401
    """All nodes that the parser does not take; parsing stops at the first."""
    builder = trt.Builder(logger)
    parser = trt.OnnxParser(builder.create_network(strongly_typed(trt)), logger)
    parser.supports_model_v2(graph.model.SerializeToString(), _path(graph))
    return _refusals(parser)


def strongly_typed(trt: Any) -> int:  # noqa: ANN401
    """Flags of a network that computes in the types of its graph."""
    return 1 << int(trt.NetworkDefinitionCreationFlag.STRONGLY_TYPED)


def _path(graph: LoadedGraph) -> str:
    """A path in the folder of the weights: the parser takes them from there."""
    return str(graph.folder.resolve() / "graph.onnx")


def _refusals(parser: Any) -> list[Refusal]:  # noqa: ANN401
    errors = [parser.get_error(index) for index in range(parser.num_errors)]
    found = [Refusal(error.node_name(), error.node_operator(), error.desc().strip()) for error in errors]
    return list(dict.fromkeys(found))
