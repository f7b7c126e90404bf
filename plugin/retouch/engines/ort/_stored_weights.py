"""Weights of edit graphs in the layout in which the model stores them.

A convolution's weights are stored as [C_out, C, taps...] and edits multiply by [C_out, taps * C]. ONNX Runtime derives
that when it loads a graph, slowly and into a copy, which Retouch's kernels copy once more into panels of their own. The
kernels therefore take the weights as they are stored.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import onnx

from retouch.engines.ort._prune import prune_graph

__all__ = ["give_stored_weights"]

_DOMAIN = "ai.retouch"
_CONVOLUTIONS = ("EditConv", "BatchEditConv", "GroupedEditConv", "BatchGroupedEditConv")
_WEIGHT = 5
_STORED = "stored_weight"


def give_stored_weights(model: onnx.ModelProto) -> None:
    """Makes convolutions of active rows read [C_out, C, T] out of the weights file, in place.

    Only their function bodies still bring it into another order, where no kernel takes the node. An operator stays as
    it is if one of its nodes computes its weights otherwise.
    """
    kernels = _Kernels.of(model.graph)
    views: dict[str, onnx.TensorProto] = {}
    for function in model.functions:
        if function.domain == _DOMAIN and function.name.startswith(_CONVOLUTIONS):
            nodes = [node for node in model.graph.node if (node.domain, node.op_type) == (_DOMAIN, function.name)]
            sources = [source for node in nodes if (source := kernels.behind(node.input[_WEIGHT])) is not None]
            if not nodes or len(sources) < len(nodes):
                continue
            for node, source in zip(nodes, sources, strict=True):
                view = _view(source)
                node.input[_WEIGHT] = view.name
                views[view.name] = view
            _reorder_inside(function)
    if views:
        model.graph.initializer.extend(views.values())
        prune_graph(model.graph, [output.name for output in model.graph.output])


@dataclass(frozen=True)
class _Kernels:
    """Where the values of a graph come from."""

    producers: Mapping[str, onnx.NodeProto]
    initializers: Mapping[str, onnx.TensorProto]

    @classmethod
    def of(cls, graph: onnx.GraphProto) -> _Kernels:
        """Of a graph in which nothing was replaced yet."""
        producers = {name: node for node in graph.node for name in node.output}
        return cls(producers, {tensor.name: tensor for tensor in graph.initializer})

    def behind(self, weight: str) -> onnx.TensorProto | None:
        """The kernel [C_out, C, taps...] that a weight [C_out, T * C] is made of; ``None`` if it is made otherwise."""
        chain = list(self._up(weight))
        if [node.op_type for node in chain] != ["Reshape", "Transpose"]:
            return None
        source = self.initializers.get(chain[-1].input[0])
        if source is None or len(source.dims) <= 2:
            return None
        channels_last = [0, *range(2, len(source.dims)), 1]
        return source if _axes(chain[-1]) == channels_last else None

    def _up(self, name: str) -> Iterator[onnx.NodeProto]:
        while name in self.producers:
            yield self.producers[name]
            name = self.producers[name].input[0]


def _view(kernel: onnx.TensorProto) -> onnx.TensorProto:
    """The same numbers, in the same place of the weights file, as [C_out, C, T]."""
    view = onnx.TensorProto()
    view.CopyFrom(kernel)
    view.name = f"{kernel.name}.{_STORED}"
    view.dims[:] = [*kernel.dims[:2], math.prod(kernel.dims[2:])]
    return view


def _axes(transpose: onnx.NodeProto) -> list[int]:
    return [axis for attribute in transpose.attribute if attribute.name == "perm" for axis in attribute.ints]


def _reorder_inside(function: onnx.FunctionProto) -> None:
    """Lets the body of a function begin with what its graph did to the weights."""
    weight = function.input[_WEIGHT]
    function.input[_WEIGHT] = _STORED
    turned = f"{_STORED}.turned"
    perm = onnx.AttributeProto(name="perm", type=onnx.AttributeProto.INTS, ints=[0, 2, 1])
    axis = onnx.AttributeProto(name="axis", type=onnx.AttributeProto.INT, i=1)
    body = [
        onnx.NodeProto(op_type="Transpose", input=[_STORED], output=[turned], attribute=[perm]),
        onnx.NodeProto(op_type="Flatten", input=[turned], output=[weight], attribute=[axis]),
        *function.node,
    ]
    del function.node[:]
    function.node.extend(body)
