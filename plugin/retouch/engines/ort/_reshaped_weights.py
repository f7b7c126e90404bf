"""Weights that a graph reshapes, read from the weights file in that shape.

ONNX Runtime would copy them when it loads the graph.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import onnx

__all__ = ["give_reshaped_weights"]


def give_reshaped_weights(model: onnx.ModelProto) -> None:
    """Replaces every Reshape of a weight into constant sizes by the weight in these sizes, in place."""
    graph = model.graph
    initializers = {tensor.name: tensor for tensor in graph.initializer}
    kept: list[onnx.NodeProto] = []
    views: list[onnx.TensorProto] = []
    for node in graph.node:
        view = _view(node, initializers) if node.op_type == "Reshape" and not node.domain else None
        if view is None:
            kept.append(node)
        else:
            views.append(view)
    if views:
        del graph.node[:]
        graph.node.extend(kept)
        graph.initializer.extend(views)


def _view(node: onnx.NodeProto, initializers: Mapping[str, onnx.TensorProto]) -> onnx.TensorProto | None:
    weight, sizes = (initializers.get(name) for name in node.input)
    # What lies in the graph itself is small, and may be no more than a shape.
    if weight is None or sizes is None or not weight.external_data or sizes.external_data:
        return None
    view = onnx.TensorProto()
    view.CopyFrom(weight)
    view.name = node.output[0]
    dims = _sizes(weight.dims, onnx.numpy_helper.to_array(sizes).tolist())
    if math.prod(dims) != math.prod(weight.dims):
        return None
    view.dims[:] = dims
    return view


def _sizes(before: Sequence[int], wanted: Sequence[int]) -> list[int]:
    """What a Reshape makes of sizes: zero is the size that was there, and -1 what is left."""
    known = [before[axis] if size == 0 and axis < len(before) else size for axis, size in enumerate(wanted)]
    rest = math.prod(before) // max(math.prod(size for size in known if size != -1), 1)
    return [rest if size == -1 else size for size in known]
