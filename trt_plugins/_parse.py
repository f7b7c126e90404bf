"""A graph as a network of TensorRT."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import onnx

from retouch.engines.tensorrt import Messages, with_given_operands
from retouch.errors import BuildError
from retouch.trt_plugins._graphs import LoadedGraph

__all__ = ["Refusal", "parse", "strongly_typed"]

_SHOWN = 10


@dataclass(frozen=True)
class Refusal:
    """A node that the parser does not take.

    Attributes:
        node: its name, or that of what it computes.
        op: its operator.
        reason: what the parser says.
    """

    node: str
    op: str
    reason: str

    def __str__(self) -> str:
        return f"{self.op} {self.node!r}: {self.reason}"


def parse(trt: Any, network: Any, logger: Any, graph: LoadedGraph, messages: Messages, name: str) -> Any:  # noqa: ANN401
    """The parser that read a graph into an empty network, operators of ours by their function bodies.

    It has to live until the engine is built.

    Raises:
        BuildError: the parser does not take it; lists the nodes.
    """
    parser = trt.OnnxParser(network, logger)
    model = with_given_operands(graph.model)
    # The parser takes weights from the folder of this path.
    if parser.parse(model.SerializeToString(), str(graph.folder.resolve() / name)):
        return parser
    found = _refusals(trt, parser, model.graph)
    shown = "\n  ".join(str(refusal) for refusal in found[:_SHOWN])
    more = f"\n  and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    raise BuildError(
        f"Expected {trt.__name__} {trt.__version__} to take every node of {name}, but it refuses {len(found)}:\n  "
        f"{shown or messages.cause}{more}\nUpdate it, or run the bundle on ONNX Runtime."
    )


def strongly_typed(trt: Any) -> int:  # noqa: ANN401
    """Flags of a network that computes in the types of its graph; releases that know no other networks have none."""
    flag = getattr(trt.NetworkDefinitionCreationFlag, "STRONGLY_TYPED", None)
    return 0 if flag is None else 1 << int(flag)


def _refusals(trt: Any, parser: Any, graph: onnx.GraphProto) -> list[Refusal]:  # noqa: ANN401
    """The nodes that the parser does not take. It looks at all nodes before it reads the first."""
    found = []
    for index in range(parser.num_errors):
        error = parser.get_error(index)
        inside = error.local_function_stack_size() > 0  # then the node's number is one of the function's
        node = graph.node[error.node()] if not inside and 0 <= error.node() < len(graph.node) else onnx.NodeProto()
        name = error.node_name() or node.name or next(iter(node.output), "")
        unknown = error.code() == trt.ErrorCode.UNSUPPORTED_NODE and error.desc() == "false"
        reason = "the operator is not supported" if unknown else error.desc().strip()
        found.append(Refusal(name, error.node_operator() or node.op_type, reason))
    return list(dict.fromkeys(found))
