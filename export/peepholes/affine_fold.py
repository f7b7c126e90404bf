"""``((x * a) + b) * c + d``  ->  ``x * (a c) + (b c + d)`` where a, b, c, d are known before the edit.

The new factors move to the prep graph. GroupNorm's scale and shift, its affine map and a modulation by the time
embedding become one multiplication and one addition.
"""

from __future__ import annotations

from dataclasses import dataclass

import onnx_ir as ir

from retouch.export.node_builder import NodeBuilder
from retouch.export.peepholes._rebuild import Peephole

__all__ = ["fold_affine"]


def fold_affine(builder: NodeBuilder, outputs: list[ir.Value]) -> list[ir.Value]:
    """Folds chains of multiplications and additions."""
    return _AffineFold(builder).run(outputs)


@dataclass(frozen=True)
class _Affine:
    """A value as ``source * factor + shift``."""

    source: ir.Value
    factor: ir.Value | None
    shift: ir.Value | None


class _AffineFold(Peephole):
    def __init__(self, builder: NodeBuilder) -> None:
        super().__init__(builder)
        self.known: dict[ir.Value, _Affine] = {}

    def rewrite(self, node: ir.Node) -> ir.Value | None:
        operands = self.split_operands(node) if node.op_type in ("Mul", "Add") and node.domain == "" else None
        if operands is None:
            return None
        source, term = operands
        before = self.known.get(source)
        if before is None:
            multiplies = node.op_type == "Mul"
            self.known[node.outputs[0]] = _Affine(source, term if multiplies else None, None if multiplies else term)
            return None
        after = self._multiplied(before, term) if node.op_type == "Mul" else self._added(before, term)
        if node.op_type == "Add" and before.shift is None:
            self.known[node.outputs[0]] = after
            return None
        result = after.source
        if after.factor is not None:
            result = self.builder.op("Mul", [result, after.factor])
        if after.shift is not None:
            result = self.builder.op("Add", [result, after.shift])
        self.known[result] = after
        return result

    def _multiplied(self, affine: _Affine, term: ir.Value) -> _Affine:
        factor = term if affine.factor is None else self.builder.op("Mul", [affine.factor, term])
        shift = None if affine.shift is None else self.builder.op("Mul", [affine.shift, term])
        return _Affine(affine.source, factor, shift)

    def _added(self, affine: _Affine, term: ir.Value) -> _Affine:
        shift = term if affine.shift is None else self.builder.op("Add", [affine.shift, term])
        return _Affine(affine.source, affine.factor, shift)
