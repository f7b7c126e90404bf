"""``Gemm(x, w, b)``  ->  ``RowLinear(x, w, b)`` where ``w`` is the same in every run.

The operator's body is the Gemm it replaces: a stock runtime sees no difference.
"""

from __future__ import annotations

import onnx_ir as ir

from retouch.export.model_shapes import attribute, dtype_of
from retouch.export.node_builder import BindingTime, NodeBuilder
from retouch.export.ops._domain import DOMAIN
from retouch.export.peepholes._rebuild import Peephole

__all__ = ["name_row_products"]


def name_row_products(builder: NodeBuilder, outputs: list[ir.Value]) -> list[ir.Value]:
    """Names products of rows with constant weights, so that a runtime with a kernel for them finds them."""
    return _RowLinear(builder).run(outputs)


class _RowLinear(Peephole):
    def rewrite(self, node: ir.Node) -> ir.Value | None:
        if node.op_type != "Gemm" or node.domain != "":
            return None
        rows, weight = node.inputs[:2]
        if weight is None or self.builder.time[weight] is not BindingTime.CONSTANT or self.early(rows):
            return None
        if attribute(node, "transA", 0) or attribute(node, "alpha", 1.0) != 1.0 or attribute(node, "beta", 1.0) != 1.0:
            return None
        transposed = int(attribute(node, "transB", 0))
        dtype = _element_type(weight)
        return self.builder.op("RowLinear", node.inputs, {"transB": transposed}, domain=DOMAIN, dtype=dtype)


def _element_type(weight: ir.Value) -> ir.DataType:
    """The type of a weight, through the transposes and reshapes that bring a kernel into the form of a matrix."""
    while weight.type is None:
        producer = weight.producer()
        assert producer is not None and producer.inputs[0] is not None
        weight = producer.inputs[0]
    return dtype_of(weight)
