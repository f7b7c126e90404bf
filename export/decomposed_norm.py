"""Recognises ``(v - mean(v)) / sqrt(var(v) + e)`` over all axes behind the second, as exporters write it out."""

from __future__ import annotations

from dataclasses import dataclass

import onnx_ir as ir

from retouch.export.model_shapes import attribute, constant, shape_of
from retouch.export.rules.reduce import reduced_axes

__all__ = ["NormPattern", "match_norm"]


@dataclass(frozen=True)
class NormPattern:
    """What is normalised, and what is added to its variance."""

    value: ir.Value
    epsilon: float


def match_norm(node: ir.Node) -> NormPattern | None:
    """The norm that a division, or a multiplication with a reciprocal, ends; ``None`` if it ends none."""
    for centred, root in _quotients(node):
        value = _centred(centred)
        shifted = _operands(root, "Sqrt")
        if value is None or shifted is None:
            continue
        epsilon, variance = _scalar_and_other(_operands(shifted[0], "Add"))
        if epsilon is None or variance is None:
            continue
        squares = _mean(variance)
        if squares is not None and _is_square_of(squares, centred):
            return NormPattern(value, epsilon)
    return None


def _quotients(node: ir.Node) -> list[tuple[ir.Value, ir.Value]]:
    """The possible dividends and divisors of a node."""
    a, b = (*node.inputs, None, None)[:2]
    if a is None or b is None or node.domain != "" or node.op_type not in ("Div", "Mul"):
        return []
    if node.op_type == "Div":
        return [(a, b)]
    inverses = [(x, _operands(y, "Reciprocal")) for x, y in ((a, b), (b, a))]
    return [(x, operands[0]) for x, operands in inverses if operands is not None]


def _operands(value: ir.Value, op_type: str) -> tuple[ir.Value, ...] | None:
    producer = value.producer()
    if producer is None or producer.op_type != op_type or producer.domain != "" or None in producer.inputs:
        return None
    return tuple(operand for operand in producer.inputs if operand is not None)


def _scalar_and_other(operands: tuple[ir.Value, ...] | None) -> tuple[float | None, ir.Value | None]:
    for scalar, other in () if operands is None else (operands, operands[::-1]):
        array = constant(scalar)
        if array is not None and array.size == 1:
            return float(array.reshape(())), other
    return None, None


def _mean(value: ir.Value) -> ir.Value | None:
    """What a value is the mean of, over all axes behind the second and with those axes kept."""
    producer = value.producer()
    if producer is None or producer.op_type != "ReduceMean" or not attribute(producer, "keepdims", 1):
        return None
    axes = reduced_axes(producer)
    whole = tuple(range(2, len(shape_of(producer.inputs[0]))))
    return producer.inputs[0] if axes is not None and whole and tuple(sorted(axes)) == whole else None


def _centred(value: ir.Value) -> ir.Value | None:
    """What a value is, less its mean."""
    operands = _operands(value, "Sub")
    return operands[0] if operands is not None and _mean(operands[1]) is operands[0] else None


def _is_square_of(value: ir.Value, root: ir.Value) -> bool:
    factors = _operands(value, "Mul")
    if factors is not None:
        return factors == (root, root)
    powers = _operands(value, "Pow")
    exponent = constant(powers[1]) if powers is not None else None
    return powers is not None and powers[0] is root and exponent is not None and bool((exponent == 2).all())
