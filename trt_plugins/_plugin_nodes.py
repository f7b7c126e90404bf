"""Nodes of Retouch's operators  ->  nodes that TensorRT's parser makes plugins of, or custom operators of ONNX Runtime.

Before: ``ai.retouch`` nodes with function bodies; the parts of a tail are in the operator's name, numbers such as the
scale of attention are operands. After: nodes of the plugins' operators, with the parts and numbers as attributes and
without operands that are left out, in the namespace and version of the plugins. What a plugin does not take keeps its
body: numbers that are computed by the graph, moments, and ``Rows...`` and ``StackedAttention``, which TensorRT fuses.

ONNX Runtime's custom operators have a place for every operand, which is left empty; plugins have none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import onnx
from numpy.typing import NDArray

from retouch.export.ops.tails import NORM, Tail
from retouch.trt_plugins._kernel_library import ACTIVATIONS

__all__ = ["DOMAIN", "PLUGIN_VERSION", "PluginNodes", "with_plugins"]

DOMAIN = "ai.retouch"
PLUGIN_VERSION = "3"
_AS_THEY_ARE = ("GatherRows", "MaskedMerge")
_OPERANDS = {"EditConv": 7, "RowLinear": 3, NORM: 7}
_SCATTER = "ScatterRows"
_ATTENTION = "EditAttention"
_SCALE = 6

Numbers = Mapping[str, int | float]


@dataclass(frozen=True)
class PluginNodes:
    """What became of a graph.

    Attributes:
        plugins: number of nodes per plugin.
        bodies: number of nodes per operator that keep their bodies.
    """

    plugins: Mapping[str, int]
    bodies: Mapping[str, int]


def with_plugins(model: onnx.ModelProto, *, places: bool = False) -> PluginNodes:
    """Turns the nodes that plugins take into plugins' nodes, in place.

    Args:
        model: the graph.
        places: whether operands that are left out keep their places, as custom operators of ONNX Runtime have it.
    """
    constants = _Constants(model.graph)
    plugins: Counter[str] = Counter()
    bodies: Counter[str] = Counter()
    for node in model.graph.node:
        if node.domain != DOMAIN:
            continue
        made = _plugin_node(node, constants, places=places)
        if made is None:
            bodies[node.op_type] += 1
        else:
            node.CopyFrom(made)
            plugins[made.op_type] += 1
    used = [function for function in model.functions if function.domain != DOMAIN or function.name in bodies]
    del model.functions[:]
    model.functions.extend(used)
    return PluginNodes(dict(sorted(plugins.items())), dict(sorted(bodies.items())))


class _Constants:
    """The values of a graph that are known before it runs."""

    def __init__(self, graph: onnx.GraphProto) -> None:
        self._tensors = {tensor.name: tensor for tensor in graph.initializer if not tensor.external_data}
        self._nodes = {node.output[0]: node for node in graph.node if node.op_type == "Constant" and not node.domain}

    def of(self, name: str) -> NDArray[np.generic] | None:
        """The contents of a value, ``None`` if they are not known."""
        if name in self._tensors:
            return np.asarray(onnx.numpy_helper.to_array(self._tensors[name]))
        node = self._nodes.get(name)
        if node is None:
            return None
        (attribute,) = node.attribute
        value = onnx.helper.get_attribute_value(attribute)  # noqa: TID251  (reads, builds nothing)
        return np.asarray(onnx.numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else value)

    def number(self, name: str) -> float | None:
        """A value that is one number."""
        array = self.of(name)
        return float(array.reshape(-1)[0]) if array is not None and array.size == 1 else None


def _plugin_node(node: onnx.NodeProto, constants: _Constants, *, places: bool) -> onnx.NodeProto | None:
    if node.op_type in _AS_THEY_ARE:
        return _made(node, node.op_type, node.input, {})
    if node.op_type == _SCATTER:
        return _made(node, _SCATTER, node.input, {attribute.name: attribute.i for attribute in node.attribute})
    if node.op_type == _ATTENTION:
        scale = constants.number(node.input[_SCALE])
        return None if scale is None else _made(node, _ATTENTION, node.input[:_SCALE], {"scale": scale})
    if node.op_type not in _tailed():
        return None
    base, tail = _tailed()[node.op_type]
    given: list[str] = list(node.input)
    own, operands = given[: _OPERANDS[base]], given[_OPERANDS[base] :]
    if places:
        operands = _in_places(tail, operands)
    if base == NORM:
        return _norm(node, tail, own, operands[-2:], constants)
    *needed, bias = [*own, *[""] * (_OPERANDS[base] - len(own))]
    numbers: dict[str, int | float] = {"biased": int(bool(bias)), **_parts(tail)}
    if base == "RowLinear":
        (attribute,) = node.attribute
        numbers["transB"] = attribute.i
    return _made(node, base, [*needed, *([bias] if bias or places else []), *operands], numbers)


def _norm(
    node: onnx.NodeProto, tail: Tail, own: Sequence[str], operands: Sequence[str], constants: _Constants
) -> onnx.NodeProto | None:
    *rows, grouping, share, epsilon = own
    groups, shared, least = constants.of(grouping), constants.number(share), constants.number(epsilon)
    if groups is None or shared is None or least is None:
        return None
    numbers: dict[str, int | float] = {"groups": int(groups.reshape(-1)[1]), "share": shared, "epsilon": least}
    parts = {name: value for name, value in _parts(tail).items() if name in ("affine", "activation")}
    return _made(node, NORM, [*rows, *operands], {**numbers, **parts})


def _in_places(tail: Tail, operands: Sequence[str]) -> list[str]:
    """The operands of a tail with empty names for those that it does not have: gate, residual, factor, shift."""
    names = iter(operands)
    return [next(names) if there else "" for there in (tail.gated, tail.added, tail.affine, tail.affine)]


def _parts(tail: Tail) -> dict[str, int]:
    return {
        "gated": int(tail.gated),
        "added": int(tail.added),
        "kept": int(tail.kept),
        "affine": int(tail.affine),
        "activation": ACTIVATIONS[tail.activation.value],
    }


def _made(node: onnx.NodeProto, op_type: str, inputs: Sequence[str], numbers: Numbers) -> onnx.NodeProto:
    return onnx.NodeProto(
        name=node.name,
        op_type=op_type,
        domain=DOMAIN,
        input=inputs,
        output=node.output,
        attribute=_attributes({**numbers, "plugin_namespace": DOMAIN, "plugin_version": PLUGIN_VERSION}),
    )


def _attributes(values: Mapping[str, int | float | str]) -> Iterator[onnx.AttributeProto]:
    kinds = onnx.AttributeProto
    for name, value in values.items():
        if isinstance(value, str):
            yield kinds(name=name, type=kinds.STRING, s=value.encode())
        elif isinstance(value, int):
            yield kinds(name=name, type=kinds.INT, i=value)
        else:
            yield kinds(name=name, type=kinds.FLOAT, f=value)


@cache
def _tailed() -> Mapping[str, tuple[str, Tail]]:
    """The operator and the tail that a name stands for."""
    return {base + tail.name: (base, tail) for base in _OPERANDS for tail in Tail.all()}
