"""``Gemm(x, w, b) + c``  ->  ``Gemm(x, w, b + c)`` where ``c`` is known before the edit; the same for our products.

Gives matrix products their bias, and folds a time embedding that is added after a convolution into its bias.
"""

from __future__ import annotations

import onnx_ir as ir

from retouch.export.node_builder import NodeBuilder
from retouch.export.ops._domain import DOMAIN
from retouch.export.peepholes._rebuild import Peephole

__all__ = ["fold_gemm_bias"]

_BIAS_INDEX = {
    ("", "Gemm"): 2,
    (DOMAIN, "BatchRowLinear"): 2,
    (DOMAIN, "EditConv"): 6,
    (DOMAIN, "BatchEditConv"): 6,
    (DOMAIN, "DepthwiseEditConv"): 6,
    (DOMAIN, "BatchDepthwiseEditConv"): 6,
}


def fold_gemm_bias(builder: NodeBuilder, outputs: list[ir.Value]) -> list[ir.Value]:
    """Folds additions into the bias of the product before them."""
    return _GemmBias(builder).run(outputs)


class _GemmBias(Peephole):
    def rewrite(self, node: ir.Node) -> ir.Value | None:
        operands = self.split_operands(node) if node.op_type == "Add" and node.domain == "" else None
        if operands is None:
            return None
        product, addend = operands
        producer = product.producer()
        if producer is None or self.uses[product] != 1:
            return None
        index = _BIAS_INDEX.get((producer.domain, producer.op_type))
        if index is None:
            return None
        inputs = list(producer.inputs)
        bias = inputs[index] if len(inputs) > index else None
        if bias is not None:
            addend = self.builder.op("Add", [bias, addend])
        return self.builder.clone(producer, [*inputs[:index], addend, *inputs[index + 1 :]])[0]
