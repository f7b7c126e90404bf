"""``LayerNormalization(x, s, b) * a + c``  ->  ``LayerNormalization(x, s a, b a + c)`` for a, c known before the edit.

Folds the modulation of adaptive layer norms (adaLN) into the norm's own scale and bias.
"""

from __future__ import annotations

import onnx_ir as ir

from retouch.export.model_shapes import attribute
from retouch.export.node_builder import NodeBuilder
from retouch.export.peepholes._rebuild import Peephole

__all__ = ["fold_norm_affine"]


def fold_norm_affine(builder: NodeBuilder, outputs: list[ir.Value]) -> list[ir.Value]:
    """Folds one multiplication and one addition behind a layer norm into it."""
    return _NormAffine(builder).run(outputs)


def _width(value: ir.Value | None) -> int | None:
    """The size of a one-dimensional value."""
    if value is None or value.shape is None or len(value.shape) != 1:
        return None
    return int(value.shape[0])  # type: ignore[arg-type]


def _is_per_channel(value: ir.Value, width: int) -> bool:
    """Whether a value holds one number per channel, or one for all: a batch of several has modulations of its own."""
    if value.shape is None:
        return False
    sizes = [size for size in value.shape if size != 1]
    return not sizes or (sizes == [width] and value.shape[-1] == width)


class _NormAffine(Peephole):
    def rewrite(self, node: ir.Node) -> ir.Value | None:
        operands = self.split_operands(node) if node.op_type in ("Mul", "Add") and node.domain == "" else None
        if operands is None:
            return None
        normed, term = operands
        norm = normed.producer()
        if norm is None or norm.op_type != "LayerNormalization" or self.uses[normed] != 1:
            return None
        scale, bias = norm.inputs[1], norm.inputs[2] if len(norm.inputs) > 2 else None
        width = _width(scale)
        if scale is None or width is None or attribute(norm, "axis", -1) != -1 or not _is_per_channel(term, width):
            return None
        # Scale and bias must be exactly one-dimensional; the term may be a scalar or have leading ones.
        term = self.builder.op("Reshape", [self.builder.op("Expand", [term, self.builder.ints([width])]), self._flat()])
        if node.op_type == "Mul":
            scale = self._flattened(self.builder.op("Mul", [scale, term]), scale, width)
            bias = None if bias is None else self._flattened(self.builder.op("Mul", [bias, term]), scale, width)
        else:
            bias = term if bias is None else self._flattened(self.builder.op("Add", [bias, term]), scale, width)
        return self.builder.clone(norm, [norm.inputs[0], scale, bias] if bias is not None else [norm.inputs[0], scale])[
            0
        ]

    def _flat(self) -> ir.Value:
        return self.builder.ints([-1])

    def _flattened(self, value: ir.Value, like: ir.Value, width: int) -> ir.Value:
        value.type, value.shape = like.type, ir.Shape([width])
        return value
