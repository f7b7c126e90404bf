"""Elementwise operators with broadcasting, positional constants, and concatenating or cutting along channels."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto

BATCHES = pytest.mark.parametrize("batch", [1, 2])

SHAPES: dict[str, tuple[int, ...]] = {
    "scalar": (),
    "one_element": (1, 1, 1, 1),
    "columns": (8,),
    "lines": (8, 1),
    "positions": (8, 8),
    "channels": (4, 1, 1),
    "everything": (1, 4, 8, 8),
    "channels_and_lines": (4, 8, 1),
}


@BATCHES
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("side", ["left", "right"])
def test_constants(net, side: str, shape: str, batch: int) -> None:
    graph = net((batch, 4, 8, 8))
    constant = graph.const(graph.generator.uniform(0.5, 2, SHAPES[shape]).astype(np.float32))
    operands = (constant, "x") if side == "left" else ("x", constant)
    graph.on_rows(graph.op("Sub", *operands))


@pytest.mark.parametrize("shape", SHAPES)
def test_conditions(net, shape: str) -> None:
    """The same shapes, given by an input instead of a constant."""
    graph = net((2, 4, 8, 8))
    y = graph.op("Add", graph.op("Mul", "x", graph.input("c", SHAPES[shape])), graph.const(0.5))
    graph.on_rows(graph.op("Conv", y, graph.weight(4, 4, 3, 3), pads=[1] * 4))


def test_condition_per_element_of_the_batch(net) -> None:
    graph = net((2, 4, 8, 8))
    embedding = graph.op("MatMul", graph.input("c", [2, 6]), graph.weight(6, 4))
    y = graph.op("Add", "x", graph.op("Reshape", embedding, graph.ints(2, 4, 1, 1)))
    graph.on_rows(graph.op("Conv", y, graph.weight(4, 4, 3, 3), pads=[1] * 4))


def test_rows_that_broadcast_to_more_axes(net) -> None:
    """[B, 1, H, W] against [4, 1, 1] and [3, 1, 1, 1, 1]: new axes come from the constants."""
    graph = net((1, 1, 8, 8))
    y = graph.op("Mul", "x", graph.weight(4, 1, 1))
    y = graph.op("Add", y, graph.weight(3, 1, 1, 1, 1))
    graph.on_rows(graph.op("Softmax", y, axis=0))


def test_rows_of_lower_rank_than_the_result(net) -> None:
    graph = net((8, 8), axes=(0, 1))
    graph.on_rows(graph.op("Add", graph.op("Mul", "x", graph.weight(2, 3, 1, 1)), graph.weight(3, 1, 8)))


def test_per_row_scalars_against_channels(net) -> None:
    graph = net()
    mean = graph.op("ReduceMean", "x", graph.ints(1))
    graph.on_rows(graph.op("Where", graph.op("Greater", "x", mean), "x", graph.op("Neg", mean)))


def test_grid_made_by_broadcasting_is_dense_and_correct(net) -> None:
    graph = net((1, 8, 1), axes=(1,))
    y = graph.op("Sigmoid", graph.op("Mul", graph.op("Transpose", "x", perm=[0, 2, 1]), "x"))
    bundle = graph.export(graph.op("Concat", y, "x", axis=2), graph.op("Sigmoid", "x"))
    assert any("different axes" in (row.reason or "") for row in bundle.manifest.plan)


@BATCHES
@pytest.mark.parametrize("source", ["constant", "input", "table"])
def test_positional_embedding_of_tokens(net, source: str, batch: int) -> None:
    graph = net((batch, 16, 8), axes=(1,))
    if source == "constant":
        positions = graph.weight(1, 16, 8)
    elif source == "input":
        positions = graph.input("positions", [1, 16, 8])
    else:
        indices = graph.input("indices", [1, 16], TensorProto.INT64)
        positions = graph.op("Gather", graph.weight(32, 8), indices)
    y = graph.op("Add", graph.op("MatMul", "x", graph.weight(8, 8)), positions)
    graph.on_rows(graph.op("MatMul", y, graph.weight(8, 8)))


def test_coordinates_as_channels(net) -> None:
    """Coordinate convolution: a constant map per position is concatenated to the channels."""
    graph = net((2, 4, 8, 8))
    lines = graph.const(np.linspace(-1, 1, 8, dtype=np.float32).reshape(1, 1, 8, 1))
    lines = graph.op("Expand", lines, graph.ints(2, 1, 8, 8))
    y = graph.op("Concat", "x", lines, graph.input("mask", [2, 1, 8, 8]), axis=1)
    graph.on_rows(graph.op("Conv", y, graph.weight(4, 6, 3, 3), pads=[1] * 4))


@BATCHES
def test_skip_connections(net, batch: int) -> None:
    graph = net((batch, 4, 8, 8))
    down = graph.op("Conv", "x", graph.weight(6, 4, 3, 3), pads=[1] * 4, strides=[2, 2])
    scales = graph.const(np.array([1, 1, 2, 2], np.float32))
    up = graph.op("Resize", graph.op("Sigmoid", down), "", scales, mode="nearest")
    y = graph.op("Concat", up, "x", graph.op("Tanh", "x"), axis=-3)
    first, rest = graph.ops("Split", y, graph.ints(5, 9), outputs=2, axis=1)
    picked = graph.op("Slice", rest, graph.ints(8), graph.ints(-10), graph.ints(1), graph.ints(-2))
    graph.on_rows(graph.op("Concat", first, picked, axis=1))


def test_equal_parts(net) -> None:
    graph = net((1, 4, 8, 8))
    gate, value = graph.ops("Split", "x", outputs=2, axis=1, num_outputs=2)
    graph.on_rows(graph.op("Mul", value, graph.op("Sigmoid", gate)))


def test_every_kind_of_value(net) -> None:
    """Comparisons give truth values, casts give integers: they carry rows as well."""
    graph = net((2, 4, 8, 8))
    positive = graph.op("And", graph.op("Greater", "x", graph.const(0.0)), graph.op("Less", "x", graph.const(1.0)))
    steps = graph.op("Cast", graph.op("Mul", "x", graph.const(3.0)), to=TensorProto.INT64)
    level = graph.op(
        "Gather", graph.weight(9, 1), graph.op("Clip", steps, *(graph.const(np.array(v)) for v in (-4, 4)))
    )
    level = graph.op("Squeeze", level, graph.ints(-1))
    small = graph.op("Cast", graph.op("Cast", steps, to=TensorProto.INT8), to=TensorProto.FLOAT)
    y = graph.op("Where", positive, level, small)
    graph.on_rows(graph.op("Conv", y, graph.weight(4, 4, 3, 3), pads=[1] * 4))


@pytest.mark.parametrize("dtype", [TensorProto.FLOAT16, TensorProto.DOUBLE])
def test_other_precisions_inside(net, dtype: int) -> None:
    graph = net()
    scale = graph.const(np.array([2, 1, 0.5, 4]).reshape(4, 1, 1).astype("float16" if dtype == 10 else "float64"))
    y = graph.op("Mul", graph.op("Cast", "x", to=dtype), scale)
    graph.on_rows(graph.op("Cast", graph.op("Abs", y), to=TensorProto.FLOAT))
