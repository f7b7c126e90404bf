"""Two exports of a model for different batches  ->  a graph whose batch is open.

Before: two graphs of the same nodes, in which the batch is a number, in the shapes of inputs and outputs and in the
constants that shapes are computed with. Where the numbers differ between the two, they stand for the batch: a 4 may
count samples in one place and heads in another. After: those dims are the open dim ``batch``, and such constants are
computed from it.

What does not read anything of a batch, such as embeddings of a time, is computed for one sample; who reads it repeats
it for all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import onnx
from numpy.typing import NDArray

from retouch.bundle import BATCH
from retouch.trt_plugins._batch_constants import SIZE, BatchConstants, differ

__all__ = ["OpenGraph", "with_open_batch"]

_T = TypeVar("_T")


@dataclass(frozen=True)
class OpenGraph:
    """A graph whose batch is open.

    Attributes:
        model: the graph.
        axes: the axes that count the batch, of the inputs and outputs that have some.
        size: the batch of the first export, if anything depends on it.
        single: outputs that are of one sample here, as nothing that the graph reads has a batch, and the axes that
            count it.
    """

    model: onnx.ModelProto
    axes: Mapping[str, tuple[int, ...]]
    size: int | None
    single: Mapping[str, tuple[int, ...]]


def with_open_batch(
    one: onnx.ModelProto, other: onnx.ModelProto, single: Mapping[str, tuple[int, ...]] | None = None
) -> OpenGraph:
    """The graph that two exports of a model for different batches are instances of.

    Args:
        one: the graph for one batch.
        other: the graph for another.
        single: inputs that other graphs gave for one sample, and the axes that count it.

    Raises:
        BuildRequestError: they differ by more than their batches.
    """
    model = onnx.ModelProto()
    model.CopyFrom(one)
    axes, sizes = _opened_edges(model.graph, other.graph)
    _compare_functions(model, other)
    constants = BatchConstants(model.graph, other.graph, *sizes)
    _open_nodes(model.graph, other.graph, constants)
    model.graph.ClearField("value_info")
    repeated = {name: counted for name, counted in (single or {}).items() if name in axes}
    carrier = next((value.name for value in model.graph.input if value.name in axes.keys() - repeated.keys()), None)
    if carrier is None:
        constants.add_to(model.graph, _constant_of(SIZE, np.ones(1, np.int64)))
        _close(model.graph.output, axes)
        return OpenGraph(model, {}, None, axes)
    for name in repeated:
        _repeat(model.graph, name, axes, constants)
    _close(model.graph.input, repeated)
    constants.add_to(model.graph, _shape(carrier, axes[carrier][0]))
    return OpenGraph(model, {name: axes[name] for name in axes if name not in repeated}, sizes[0], {})


def _close(values: Sequence[onnx.ValueInfoProto], axes: Mapping[str, tuple[int, ...]]) -> None:
    """Has tensors be of one sample."""
    for value in values:
        for axis in axes.get(value.name, ()):
            value.type.tensor_type.shape.dim[axis].dim_value = 1


def _repeat(graph: onnx.GraphProto, name: str, axes: Mapping[str, tuple[int, ...]], constants: BatchConstants) -> None:
    """Has the nodes that read an input of one sample read it for every sample."""
    (value,) = (value for value in graph.input if value.name == name)
    rest = [dim.dim_value for dim in value.type.tensor_type.shape.dim]
    counted = np.array([axis in axes[name] for axis in range(len(rest))], np.int64)
    whole = constants.repeat(name, np.array(rest, np.int64) * (1 - counted), counted)
    for node in graph.node:
        for number, read in enumerate(node.input):
            if read == name:
                node.input[number] = whole


def _opened_edges(graph: onnx.GraphProto, other: onnx.GraphProto) -> tuple[dict[str, tuple[int, ...]], tuple[int, int]]:
    """Opens the dims of inputs and outputs that differ; gives their axes, and the batches of the two."""
    pairs = [*_zipped(graph.input, other.input), *_zipped(graph.output, other.output)]
    axes: dict[str, tuple[int, ...]] = {}
    sizes: set[tuple[int, int]] = set()
    for mine, theirs in pairs:
        dims = _zipped(mine.type.tensor_type.shape.dim, theirs.type.tensor_type.shape.dim)
        counting = [axis for axis, (one, two) in enumerate(dims) if one != two]
        if mine.name != theirs.name:
            raise differ(f"{mine.name} and {theirs.name} stand in the same place")
        for axis in counting:
            one, two = dims[axis]
            sizes.add((one.dim_value, two.dim_value))
            one.dim_param = BATCH
        if counting:
            axes[mine.name] = tuple(counting)
    if len(sizes) > 1:
        raise differ(f"dims of inputs and outputs differ as {', '.join(f'{a} and {b}' for a, b in sorted(sizes))}")
    return axes, next(iter(sizes), (0, 0))


def _compare_functions(model: onnx.ModelProto, other: onnx.ModelProto) -> None:
    texts = [
        {function.name: function.SerializeToString(deterministic=True) for function in one.functions}
        for one in (model, other)
    ]
    unlike = sorted(name for name in texts[0].keys() | texts[1].keys() if texts[0].get(name) != texts[1].get(name))
    if unlike:
        raise differ(f"the operators {', '.join(unlike)} have different bodies")


def _open_nodes(graph: onnx.GraphProto, other: onnx.GraphProto, constants: BatchConstants) -> None:
    """Gives nodes opened constants where the two graphs have different ones."""
    renamed: dict[str, str] = {}
    for mine, theirs in _zipped(graph.node, other.node):
        if _kind(mine) != _kind(theirs) or len(mine.input) != len(theirs.input):
            raise differ(f"{mine.op_type} {mine.name!r} stands where the other has {theirs.op_type}")
        for number, (name, of_other) in enumerate(zip(mine.input, theirs.input, strict=True)):
            if constants.has(name, of_other):
                mine.input[number] = constants.opened(name, of_other)
            elif renamed.get(of_other, of_other) != name:
                raise differ(f"{mine.op_type} {mine.name!r} reads {name} where the other reads {of_other}")
        renamed.update(zip(theirs.output, mine.output, strict=True))


def _shape(name: str, axis: int) -> onnx.NodeProto:
    kinds = onnx.AttributeProto
    bounds = {"start": axis, "end": axis + 1}
    attributes = [kinds(name=key, type=kinds.INT, i=value) for key, value in bounds.items()]
    return onnx.NodeProto(op_type="Shape", name=SIZE, input=[name], output=[SIZE], attribute=attributes)


def _constant_of(name: str, array: NDArray[np.int64]) -> onnx.NodeProto:
    tensor = onnx.AttributeProto(name="value", type=onnx.AttributeProto.TENSOR, t=onnx.numpy_helper.from_array(array))
    return onnx.NodeProto(op_type="Constant", name=name, output=[name], attribute=[tensor])


def _kind(node: onnx.NodeProto) -> tuple[object, ...]:
    attributes = sorted(attribute.SerializeToString(deterministic=True) for attribute in node.attribute)
    return node.domain, node.op_type, len(node.output), *attributes


def _zipped(mine: Sequence[_T], theirs: Sequence[_T]) -> list[tuple[_T, _T]]:
    if len(mine) != len(theirs):
        raise differ(f"one has {len(mine)} nodes, dims, inputs or outputs where the other has {len(theirs)}")
    return list(zip(mine, theirs, strict=True))
