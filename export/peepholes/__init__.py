"""Local simplifications of an edit graph before it is split by binding time."""

from __future__ import annotations

import onnx_ir as ir

from retouch.export.node_builder import NodeBuilder
from retouch.export.peepholes.affine_fold import fold_affine
from retouch.export.peepholes.fill_bias import fill_bias
from retouch.export.peepholes.gemm_bias import fold_gemm_bias
from retouch.export.peepholes.norm_affine import fold_norm_affine
from retouch.export.peepholes.row_linear import name_row_products

__all__ = ["apply_peepholes"]


def apply_peepholes(builder: NodeBuilder, outputs: list[ir.Value]) -> list[ir.Value]:
    """Applies all peepholes; returns the values that stand for the outputs now."""
    for peephole in (fold_gemm_bias, fold_affine, fold_norm_affine, name_row_products, fill_bias):
        outputs = peephole(builder, outputs)
    return outputs
