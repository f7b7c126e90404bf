"""Activations with their bias."""

from __future__ import annotations

import math

import onnx_ir as ir

from retouch.export.decompose._pass import Fused, decomposition

__all__: list[str] = []


@decomposition("Gelu")
def _gelu(fused: Fused) -> ir.Value:
    return exact_gelu(fused, fused.required(0))


@decomposition("BiasGelu")
def _bias_gelu(fused: Fused) -> ir.Value:
    return exact_gelu(fused, fused.added(fused.required(0), fused.required(1)))


@decomposition("FastGelu")
def _fast_gelu(fused: Fused) -> ir.Value:
    """``0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))``."""
    x = fused.added(fused.required(0), fused.input(1))
    cube = fused.op("Mul", x, fused.op("Mul", x, x))
    inner = fused.op("Add", x, fused.op("Mul", cube, fused.scalar(0.044715, x)))
    tanh = fused.op("Tanh", fused.op("Mul", inner, fused.scalar(math.sqrt(2 / math.pi), x)))
    half = fused.op("Mul", x, fused.scalar(0.5, x))
    return fused.op("Mul", half, fused.op("Add", tanh, fused.scalar(1.0, x)))


@decomposition("QuickGelu")
def _quick_gelu(fused: Fused) -> ir.Value:
    """``x sigmoid(alpha x)``; with alpha 1 it is SiLU."""
    x, alpha = fused.required(0), fused.number("alpha", 1.702)
    scaled = x if alpha == 1.0 else fused.op("Mul", x, fused.scalar(alpha, x))
    return fused.op("Mul", x, fused.op("Sigmoid", scaled))


@decomposition("BiasAdd")
def _bias_add(fused: Fused) -> ir.Value:
    return fused.added(fused.required(0), fused.required(1), fused.required(2))


@decomposition("BiasSplitGelu")
def _bias_split_gelu(fused: Fused) -> ir.Value:
    """The first half of the last axis times the GELU of the second."""
    x = fused.added(fused.required(0), fused.required(1))
    first, second = fused.tape.op_multi_out("Split", [x], {"axis": -1, "num_outputs": 2}, num_outputs=2)
    return fused.op("Mul", first, exact_gelu(fused, second))


def exact_gelu(fused: Fused, x: ir.Value) -> ir.Value:
    """``0.5 x (1 + erf(x / sqrt(2)))``."""
    erf = fused.op("Erf", fused.op("Mul", x, fused.scalar(1 / math.sqrt(2), x)))
    half = fused.op("Mul", x, fused.scalar(0.5, x))
    return fused.op("Mul", half, fused.op("Add", erf, fused.scalar(1.0, x)))


def activated(fused: Fused, x: ir.Value) -> ir.Value:
    """The activation that fused products name in their attributes."""
    name = str(fused.attribute("activation", "") or "")
    if not name:
        return x
    given = fused.attribute("activation_params", ()) or ()
    parameters = [float(value) for value in given]  # type: ignore[attr-defined]
    if name in ("Relu", "Tanh", "Sigmoid"):
        return fused.op(name, x)
    if name == "LeakyRelu":
        return fused.op(name, x, alpha=parameters[0] if parameters else 0.01)
    if name == "Clip":
        return fused.op(name, x, *(fused.scalar(value, x) for value in parameters))
    if name == "HardSigmoid":
        alpha, beta = parameters or (0.2, 0.5)
        return fused.op(name, x, alpha=alpha, beta=beta)
    raise fused.error(f"its activation {name!r} is not known")
