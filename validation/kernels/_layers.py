"""Layers as edit graphs have them, and convolutions as the full model has them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray

from retouch.export.ops import functions
from retouch.export.ops._domain import DOMAIN, VERSION

__all__ = ["Layer", "convolution", "linear"]

_OPSET = 18

_COPIES = 8
"""Nodes with weights of their own, as the layers of a model have: what a run costs beside its nodes is shared out."""

Arrays = Mapping[str, NDArray[Any]]


@dataclass(frozen=True, eq=False)
class Layer:
    """A layer at some number of rows.

    Attributes:
        name: what it is.
        model: nodes of ours that read the same rows, each with its own weights; bodies run where there is no kernel.
        feeds: the model's inputs.
        flops: what they take.
        dense: the layer over all positions, if it has such a form.
        dense_feeds: its inputs.
        dense_flops: what it takes.
    """

    name: str
    model: ir.Model
    feeds: Arrays
    flops: float
    dense: ir.Model | None = None
    dense_feeds: Arrays | None = None
    dense_flops: float = 0.0


def linear(depth: int, columns: int, rows: int) -> Layer:
    """A matrix product of rows with a constant weight and a bias."""
    rng = np.random.default_rng(0)
    feeds = {"rows": _normal(rng, rows, depth)}
    weights = [{"weight": _normal(rng, depth, columns), "bias": _normal(rng, columns)} for _ in range(_COPIES)]
    model = _model(DOMAIN, "RowLinear", feeds, weights, {"transB": 0})
    return Layer(f"linear {depth} to {columns}", model, feeds, 2.0 * rows * depth * columns * _COPIES)


def convolution(channels: int, side: int, rows: int) -> Layer:
    """A 3x3 convolution of a block of rows on a square grid of that side, all weights kept."""
    rng = np.random.default_rng(0)
    kernels = [(_normal(rng, channels, channels, 3, 3), _normal(rng, channels)) for _ in range(_COPIES)]
    kernel, bias = kernels[0]
    neighbours, halo = _block_neighbours(side, rows)
    feeds: dict[str, NDArray[Any]] = {
        "rows": _normal(rng, rows, channels),
        "cached": _normal(rng, side * side, channels),
        "halo": halo,
        "pad": np.zeros((1, channels), np.float32),
        "neighbours": neighbours,
    }
    weights = [{"weight": w.transpose(0, 2, 3, 1).reshape(channels, -1), "bias": b} for w, b in kernels]
    dense_feeds = {"x": _normal(rng, 1, channels, side, side)}
    attributes = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}
    flops = 2.0 * 9 * channels**2
    return Layer(
        f"3x3 convolution, {channels} channels, {side}x{side}",
        _model(DOMAIN, "EditConv", feeds, weights, {}),
        feeds,
        flops * rows * _COPIES,
        _model("", "Conv", dense_feeds, [{"w": kernel, "b": bias}], attributes),
        dense_feeds,
        flops * side * side,
    )


def _block_neighbours(side: int, rows: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The table rows [rows, 9] that a block of positions in the middle of the grid reads, and its halo."""
    width = min(side - 2, math.isqrt(rows - 1) + 1)
    places = [((side - width) // 2 + i // width, (side - width) // 2 + i % width) for i in range(rows)]
    table = {y * side + x: index for index, (y, x) in enumerate(places)}
    named = [(y + dy) * side + x + dx for y, x in places for dy in (-1, 0, 1) for dx in (-1, 0, 1)]
    halo = list(dict.fromkeys(position for position in named if position not in table))
    table |= {position: rows + index for index, position in enumerate(halo)}
    neighbours = np.array([table[position] for position in named], np.int64).reshape(rows, 9)
    return neighbours, np.array(halo, np.int64)


def _normal(rng: np.random.Generator, *shape: int) -> NDArray[np.float32]:
    return rng.standard_normal(shape).astype(np.float32) / np.float32(8)


def _model(
    domain: str,
    op_type: str,
    feeds: Arrays,
    weights: Sequence[Arrays],
    attributes: Mapping[str, int | Sequence[int]],
) -> ir.Model:
    """A node for every set of weights; results are the outputs in their order."""
    inputs = [_value(name, array) for name, array in feeds.items()]
    initializers: list[ir.Value] = []
    nodes: list[ir.Node] = []
    for number, own in enumerate(weights):
        operands = [_weight(f"{name}.{number}", array) for name, array in own.items()]
        node = ir.Node(domain, op_type, [*inputs, *operands], ir.convenience.convert_attributes(dict(attributes)))
        node.outputs[0].name, node.outputs[0].type = f"out.{number}", ir.TensorType(ir.DataType.FLOAT)
        initializers += operands
        nodes.append(node)
    opsets = {"": _OPSET, DOMAIN: VERSION}
    outputs = [node.outputs[0] for node in nodes]
    graph = ir.Graph(inputs, outputs, nodes=nodes, initializers=initializers, opset_imports=opsets, name="layer")
    model = ir.Model(graph, ir_version=10)
    for function in functions(_OPSET):
        if function.name == op_type:
            model.functions[function.identifier()] = function
    return model


def _weight(name: str, array: NDArray[Any]) -> ir.Value:
    value = _value(name, array)
    value.const_value = ir.Tensor(array, name=name)
    return value


def _value(name: str, array: NDArray[Any]) -> ir.Value:
    return ir.Value(name=name, type=ir.TensorType(ir.DataType.from_numpy(array.dtype)), shape=ir.Shape(array.shape))
