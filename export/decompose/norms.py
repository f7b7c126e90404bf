"""Norms with the residual additions in front of them."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from retouch.export.decompose._pass import Fused, decomposition

__all__: list[str] = []


@decomposition("SimplifiedLayerNormalization", domain="")
def _simplified(fused: Fused) -> ir.Value:
    axis, epsilon = fused.integer("axis", -1), fused.number("epsilon", 1e-5)
    return _rms(fused, fused.required(0), fused.required(1), epsilon, axis)


@decomposition("SkipLayerNormalization")
def _skip(fused: Fused) -> Sequence[ir.Value | None]:
    total = fused.added(fused.required(0), fused.required(1), fused.input(4))
    epsilon = fused.number("epsilon", 1e-12)
    operands = [total, fused.required(2)] + ([bias] if (bias := fused.input(3)) is not None else [])
    return fused.op("LayerNormalization", *operands, axis=-1, epsilon=epsilon), None, None, total


@decomposition("SkipSimplifiedLayerNormalization")
def _skip_simplified(fused: Fused) -> Sequence[ir.Value | None]:
    total = fused.added(fused.required(0), fused.required(1), fused.input(3))
    return _rms(fused, total, fused.required(2), fused.number("epsilon", 1e-12)), None, None, total


@decomposition("GroupNorm", "SkipGroupNorm")
def _group_norm(fused: Fused) -> Sequence[ir.Value | None]:
    """Over channels in the last axis, unless an attribute says otherwise; with a SiLU behind it where asked."""
    x = fused.required(0)
    if fused.node.op_type == "SkipGroupNorm":
        x = fused.added(x, fused.required(3), fused.input(4))
    last = bool(fused.integer("channels_last", 1))
    inner = fused.op("Transpose", x, perm=[0, 3, 1, 2]) if last else x
    groups = fused.integer("groups", 32)
    grouped = fused.op("Reshape", inner, fused.ints(0, groups, -1))
    ones, zeros = fused.scalar(1.0, x), fused.scalar(0.0, x)
    wide = [fused.op("Expand", part, fused.ints(groups)) for part in (ones, zeros)]
    epsilon = fused.number("epsilon", 1e-5)
    normal = fused.op("InstanceNormalization", grouped, *wide, epsilon=epsilon)
    normal = fused.op("Reshape", normal, fused.op("Shape", inner))
    scale, shift = (fused.op("Unsqueeze", fused.op("CastLike", fused.required(i), x), fused.ints(1, 2)) for i in (1, 2))
    result = fused.op("Add", fused.op("Mul", normal, scale), shift)
    if fused.integer("activation"):
        result = fused.op("Mul", result, fused.op("Sigmoid", result))
    return (fused.op("Transpose", result, perm=[0, 2, 3, 1]) if last else result), x


def _rms(fused: Fused, x: ir.Value, scale: ir.Value, epsilon: float, axis: int = -1) -> ir.Value:
    square = fused.op("Pow", x, fused.scalar(2.0, x))
    mean = fused.op("ReduceMean", square, fused.ints(axis), keepdims=1)
    root = fused.op("Sqrt", fused.op("Add", mean, fused.scalar(epsilon, x)))
    return fused.op("Mul", fused.op("Div", x, root), scale)
