"""``EditConv(.., w)``  ->  ``EditConv(.., w, 0)``; the same for the other products.

TensorRT's parser takes a call of a function only with all of the function's operands.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from retouch.export.model_shapes import attribute, constant
from retouch.export.node_builder import NodeBuilder
from retouch.export.ops._domain import DOMAIN
from retouch.export.peepholes._rebuild import Peephole

__all__ = ["fill_bias"]

_OPERANDS = {"EditConv": (5, 6), "BatchEditConv": (5, 6), "RowLinear": (1, 2), "BatchRowLinear": (1, 2)}
"""Which operands of an operator are the weight and the bias."""


def fill_bias(builder: NodeBuilder, outputs: list[ir.Value]) -> list[ir.Value]:
    """Gives products without a bias one of zeros."""
    return _FillBias(builder).run(outputs)


class _FillBias(Peephole):
    def rewrite(self, node: ir.Node) -> ir.Value | None:
        if node.domain != DOMAIN or node.op_type not in _OPERANDS:
            return None
        weight_index, bias_index = _OPERANDS[node.op_type]
        weight, dtype = node.inputs[weight_index], node.outputs[0].dtype
        if (len(node.inputs) > bias_index and node.inputs[bias_index] is not None) or weight is None or dtype is None:
            return None
        transposed = weight_index == 5 or int(attribute(node, "transB", 0))
        shape = _shape(weight)
        if shape is None:
            return None
        zeros = self.builder.constant(np.zeros(shape[0 if transposed else 1], dtype.numpy()))
        attributes = {name: attribute(node, name) for name in node.attributes}
        operands = [*node.inputs[:bias_index], zeros, *node.inputs[bias_index + 1 :]]
        return self.builder.op(node.op_type, operands, attributes, domain=DOMAIN, dtype=dtype)


def _shape(value: ir.Value | None) -> tuple[int, ...] | None:
    """The shape of a weight, through the transposes and reshapes that bring a kernel into the form of a matrix."""
    if value is None or value.shape is not None:
        return None if value is None else tuple(int(dim) for dim in value.shape)  # type: ignore[arg-type, union-attr]
    producer = value.producer()
    if producer is not None and producer.op_type == "Reshape":
        sizes = constant(producer.inputs[1])
        return None if sizes is None or (sizes < 1).any() else tuple(map(int, sizes))
    before = _shape(producer.inputs[0]) if producer is not None and producer.op_type == "Transpose" else None
    if before is None or producer is None:
        return None
    return tuple(before[axis] for axis in attribute(producer, "perm", range(len(before))[::-1]))
