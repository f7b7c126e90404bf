"""Products and convolutions with what was fused into them."""

from __future__ import annotations

import onnx_ir as ir

from retouch.export.decompose._pass import Fused, decomposition
from retouch.export.decompose.activations import activated

__all__: list[str] = []

_FUSED_ONLY = ("activation", "activation_params", "domain")


@decomposition("FusedMatMul", "TransposeMatMul")
def _matmul(fused: Fused) -> ir.Value:
    a, b = (
        _turned(fused, fused.required(index), fused.integer(f"trans{name}"), fused.integer(f"transBatch{name}"))
        for index, name in enumerate("AB")
    )
    product, alpha = fused.op("MatMul", a, b), fused.number("alpha", 1.0)
    return product if alpha == 1.0 else fused.op("Mul", product, fused.scalar(alpha, product))


def _turned(fused: Fused, value: ir.Value, last: int, batch: int) -> ir.Value:
    """An operand as MatMul wants it: ``transBatch`` says that the first axis is the last but one."""
    if not last and not batch:
        return value
    rank = fused.rank(value)
    perm = list(range(rank))
    if batch:
        perm = [*perm[1:-1], 0, rank - 1]
    if last:
        perm[-2:] = [perm[-1], perm[-2]]
    return fused.op("Transpose", value, perm=perm)


@decomposition("FusedGemm")
def _gemm(fused: Fused) -> ir.Value:
    given = {name: fused.attribute(name, default) for name, default in _GEMM.items()}
    return activated(fused, fused.plain("Gemm", fused.node.inputs, given))


_GEMM = {"alpha": 1.0, "beta": 1.0, "transA": 0, "transB": 0}


@decomposition("FusedConv")
def _conv(fused: Fused) -> ir.Value:
    result = fused.plain("Conv", fused.node.inputs[:3], _conv_attributes(fused))
    return activated(fused, fused.added(result, fused.input(3)))


@decomposition("NhwcConv")
def _nhwc_conv(fused: Fused) -> ir.Value:
    """Data and weight with channels last."""
    data, weight = (fused.op("Transpose", fused.required(index), perm=[0, 3, 1, 2]) for index in (0, 1))
    result = fused.plain("Conv", [data, weight, fused.input(2)], _conv_attributes(fused))
    return fused.op("Transpose", result, perm=[0, 2, 3, 1])


def _conv_attributes(fused: Fused) -> dict[str, object]:
    return {name: item.value for name, item in fused.node.attributes.items() if name not in _FUSED_ONLY}
