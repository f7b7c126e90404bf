"""Finds activations: exporters write each of them in several ways, so what a chain computes is compared."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray

from retouch.export.model_shapes import constant
from retouch.export.ops import Activation

__all__ = ["activation_of"]

Array = NDArray[np.float64]

_LONGEST = 12
_POINTS = np.linspace(-12.0, 12.0, 241)
_TOLERANCE = 1e-5
_ERF = np.vectorize(math.erf, otypes=[np.float64])

_OPERATIONS: Mapping[str, Callable[..., Array]] = {
    "Add": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
    "Div": np.divide,
    "Pow": np.power,
    "Neg": np.negative,
    "Tanh": np.tanh,
    "Erf": _ERF,
    "Sigmoid": lambda x: 1 / (1 + np.exp(-x)),
}


def _tanh_gelu(x: Array) -> Array:
    inner = np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))
    return np.asarray(0.5 * x * (1 + inner), np.float64)


_SILU: Mapping[Activation, Callable[[Array], Array]] = {Activation.SILU: lambda x: x / (1 + np.exp(-x))}
_ACTIVATIONS: Mapping[Activation, Callable[[Array], Array]] = {
    **_SILU,
    Activation.GELU: lambda x: 0.5 * x * (1 + _ERF(x / math.sqrt(2))),
    Activation.TANH_GELU: _tanh_gelu,
}


def activation_of(value: ir.Value) -> tuple[Activation, list[ir.Node]]:
    """The activation that the uses of a value amount to, and its nodes, the last of which gives the result.

    Nothing of what is computed in between may be used elsewhere. No activation has no nodes. Those with numbers in
    their bodies, which are float32, are for float32 alone.
    """
    known = _ACTIVATIONS if value.dtype == ir.DataType.FLOAT else _SILU
    computed: dict[ir.Value, Array] = {value: _POINTS}
    nodes: list[ir.Node] = []
    for node, result in _chain(computed):
        nodes.append(node)
        computed[node.outputs[0]] = result
        if any(use.node not in nodes for made in nodes[:-1] for use in made.outputs[0].uses()):
            continue
        if any(made.outputs[0].is_graph_output() for made in nodes[:-1]):
            continue
        for activation, function in known.items():
            if np.allclose(result, function(_POINTS), rtol=_TOLERANCE, atol=_TOLERANCE):
                return activation, nodes
    return Activation.NONE, []


def _chain(computed: Mapping[ir.Value, Array]) -> Iterator[tuple[ir.Node, Array]]:
    """Nodes that compute from the value and numbers alone, in an order in which they can be computed."""
    seen: set[ir.Node] = set()
    while len(seen) < _LONGEST:
        ready = next(
            (
                (node, result)
                for known in list(computed)
                for node in (use.node for use in known.uses())
                if node not in seen and (result := _applied(node, computed)) is not None
            ),
            None,
        )
        if ready is None:
            return
        seen.add(ready[0])
        yield ready


def _applied(node: ir.Node, computed: Mapping[ir.Value, Array]) -> Array | None:
    """What a node gives at the points, if all its operands are known there."""
    operation = _OPERATIONS.get(node.op_type) if node.domain == "" else None
    if operation is None:
        return None
    operands = [computed[v] if v is not None and v in computed else _number(v) for v in node.inputs]
    if any(operand is None for operand in operands):
        return None
    with np.errstate(all="ignore"):
        return np.asarray(operation(*operands), np.float64)


def _number(value: ir.Value | None) -> Array | None:
    """A constant scalar, or what is computed from such."""
    if value is None:
        return None
    array = constant(value)
    if array is not None:
        return np.asarray(array, np.float64).reshape(()) if array.size == 1 else None
    producer = value.producer()
    return None if producer is None else _applied(producer, {})
