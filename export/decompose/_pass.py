"""The pass, and what a decomposition is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import onnx_ir as ir
from onnx_ir.passes import common as passes
from onnx_ir.tape import Tape

from retouch.errors import ModelError
from retouch.export.model_shapes import attribute

__all__ = ["Fused", "decompose", "decomposition"]

MICROSOFT = "com.microsoft"
_LAYOUT_DOMAIN = "com.microsoft.nchwc"


class UnknownRankError(Exception):
    """The rank of an operand has to be known first."""


class Fused:
    """A fused node, and the tape that its decomposition goes to."""

    def __init__(self, node: ir.Node, opset: int) -> None:
        self.node = node
        self.opset = opset
        self.tape = Tape()

    def input(self, index: int) -> ir.Value | None:
        """An input, ``None`` if it was left out."""
        return self.node.inputs[index] if index < len(self.node.inputs) else None

    def required(self, index: int) -> ir.Value:
        """An input that has to be there."""
        value = self.input(index)
        if value is None:
            raise self.error(f"input {index} is missing")
        return value

    def rank(self, value: ir.Value) -> int:
        """The rank of a value."""
        if value.shape is None:
            raise UnknownRankError
        return len(value.shape)

    def size(self, value: ir.Value, axis: int) -> int:
        """The size of a value along an axis."""
        if value.shape is None or not isinstance(size := value.shape[axis], int):
            raise UnknownRankError
        return size

    def attribute(self, name: str, default: object = None) -> object:
        """An attribute, or its default."""
        return attribute(self.node, name, default)

    def number(self, name: str, default: float) -> float:
        """A numeric attribute."""
        return float(attribute(self.node, name, default))

    def integer(self, name: str, default: int = 0) -> int:
        """An integer attribute."""
        return int(attribute(self.node, name, default))

    def op(self, op_type: str, *inputs: ir.Value | None, domain: str = "", **attributes: object) -> ir.Value:
        """The output of a new node."""
        return self.tape.op(op_type, inputs, attributes, domain=domain)  # type: ignore[arg-type]

    def plain(self, op_type: str, inputs: Sequence[ir.Value | None], attributes: Mapping[str, object]) -> ir.Value:
        """The output of a new node of the standard domain with attributes taken from elsewhere."""
        return self.tape.op(op_type, inputs, attributes)  # type: ignore[arg-type]

    def ints(self, *values: int) -> ir.Value:
        """A 1-D int64 constant."""
        return self.op("Constant", value_ints=list(values))

    def scalar(self, value: float, like: ir.Value) -> ir.Value:
        """A constant of the element type of another value."""
        return self.op("CastLike", self.op("Constant", value_float=value), like)

    def array(self, array: np.ndarray) -> ir.Value:
        """A constant."""
        return self.op("Constant", value=ir.Tensor(array))

    def added(self, value: ir.Value, *others: ir.Value | None) -> ir.Value:
        """The sum of a value and those that are there."""
        for other in others:
            value = value if other is None else self.op("Add", value, other)
        return value

    def error(self, reason: str) -> ModelError:
        """The refusal of the node."""
        return ModelError(
            f"The node {self.node.name!r} ({self.node.domain}.{self.node.op_type}) cannot be taken apart: {reason}. "
            "Export the model again without ONNX Runtime's offline optimisation."
        )


Decomposition = Callable[[Fused], ir.Value | Sequence[ir.Value | None]]

_DECOMPOSITIONS: dict[tuple[str, str], Decomposition] = {}


def decomposition(*names: str, domain: str = MICROSOFT) -> Callable[[Decomposition], Decomposition]:
    """Decorator that registers a function for operators of a domain.

    The function gives the node's outputs in order; ``None`` stands for one that it cannot give.
    """

    def register(function: Decomposition) -> Decomposition:
        for name in names:
            _DECOMPOSITIONS[domain, name] = function
        return function

    return register


def decompose(model: ir.Model) -> int:
    """Replaces fused operators in place; returns their number.

    Ensures: no operator is left that this package knows; values keep their names.

    Raises:
        ModelError: a fused node is of a form, or of a domain, that cannot be taken apart.
    """
    opset = model.opset_imports.get("", 18)
    pending = [node for node in model.graph if _decomposition_of(node) is not None]
    count = len(pending)
    while pending:
        left = [node for node in pending if not _replaced(model.graph, node, opset)]
        if len(left) == len(pending):
            raise Fused(left[0], opset).error("the rank of an operand is not known")
        if left:
            passes.ShapeInferencePass()(model)
        pending = left
    if count and not any(node.domain == MICROSOFT for node in model.graph):
        model.graph.opset_imports.pop(MICROSOFT, None)
    return count


def _decomposition_of(node: ir.Node) -> Decomposition | None:
    if node.domain == _LAYOUT_DOMAIN:
        raise ModelError(
            f"The node {node.name!r} is in ONNX Runtime's internal layout ({_LAYOUT_DOMAIN}), which only the machine "
            "that optimised the model understands. Save it with graph_optimization_level ORT_ENABLE_EXTENDED or "
            "lower, or export the original model."
        )
    return _DECOMPOSITIONS.get((node.domain, node.op_type))


def _replaced(graph: ir.Graph, node: ir.Node, opset: int) -> bool:
    """Whether the node could be replaced, and was; it waits for the ranks of its operands otherwise."""
    function = _decomposition_of(node)
    assert function is not None
    try:
        _replace(graph, node, function, opset)
    except UnknownRankError:
        return False
    return True


def _replace(graph: ir.Graph, node: ir.Node, function: Decomposition, opset: int) -> None:
    fused = Fused(node, opset)
    results = function(fused)
    outputs = [results] if isinstance(results, ir.Value) else list(results)
    pairs = []
    for index, value in enumerate(node.outputs):
        used = value.is_graph_output() or any(True for _ in value.uses())
        made = outputs[index] if index < len(outputs) else None
        if used and made is None:
            raise fused.error(f"its output {index} is used")
        if used and made is not None:
            pairs.append((value, made))
    for number, new in enumerate(fused.tape.nodes):
        new.name = f"{node.name}_part_{number}"
    old_values, new_values = [old for old, _ in pairs], [new for _, new in pairs]
    ir.convenience.replace_nodes_and_values(graph, node, [node], fused.tape.nodes, old_values, new_values)
