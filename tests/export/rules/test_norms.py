"""Norms as operators and as what exporters decompose them to."""

from __future__ import annotations

import numpy as np
import pytest

BATCHES = pytest.mark.parametrize("batch", [1, 2])
SQUARES = ["Pow", "Mul"]
ENDINGS = ["Div", "Reciprocal"]


def squared(graph, value: str, form: str) -> str:
    return graph.op("Mul", value, value) if form == "Mul" else graph.op("Pow", value, graph.const(2.0))


def over_root(graph, value: str, mean_square: str, ending: str) -> str:
    root = graph.op("Sqrt", graph.op("Add", mean_square, graph.const(1e-5)))
    if ending == "Div":
        return graph.op("Div", value, root)
    return graph.op("Mul", value, graph.op("Reciprocal", root))


def normalised(graph, value: str, axes: tuple[int, ...], form: str, ending: str) -> str:
    """A value minus its mean over the square root of its variance, as single operators."""
    centred = graph.op("Sub", value, graph.op("ReduceMean", value, graph.ints(*axes)))
    variance = graph.op("ReduceMean", squared(graph, centred, form), graph.ints(*axes))
    return over_root(graph, centred, variance, ending)


def ones_and_zeros(graph, size: int) -> tuple[str, str]:
    return graph.const(np.ones(size, np.float32)), graph.const(np.zeros(size, np.float32))


@BATCHES
def test_layer_norm_operator(net, batch: int) -> None:
    graph = net((batch, 16, 8), axes=(1,))
    y = graph.op("LayerNormalization", "x", graph.weight(8), graph.weight(8), epsilon=1e-6)
    y = graph.op("LayerNormalization", graph.op("Sigmoid", y), graph.weight(8), axis=2)
    y = graph.op("Reshape", y, graph.ints(batch, 16, 2, 4))
    graph.on_rows(graph.op("LayerNormalization", y, graph.weight(2, 4), graph.weight(2, 4), axis=-2))


@BATCHES
@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("form", SQUARES)
def test_layer_norm_decomposed(net, form: str, ending: str, batch: int) -> None:
    graph = net((batch, 16, 8), axes=(1,))
    y = normalised(graph, "x", (-1,), form, ending)
    graph.on_rows(graph.op("Add", graph.op("Mul", y, graph.weight(8)), graph.weight(8)))


def test_layer_norm_over_channels_of_an_image(net) -> None:
    graph = net()
    y = graph.op("Transpose", "x", perm=[0, 2, 3, 1])
    y = graph.op("LayerNormalization", y, graph.weight(4), graph.weight(4))
    y = graph.op("Transpose", y, perm=[0, 3, 1, 2])
    graph.on_rows(graph.op("Conv", normalised(graph, y, (1,), "Pow", "Div"), graph.weight(4, 4, 3, 3), pads=[1] * 4))


def test_modulated_layer_norm_of_a_batch(net) -> None:
    """Every element of a batch has a modulation of its own, which no norm's scale can hold."""
    graph = net((2, 16, 8), axes=(1,))
    modulation = graph.op("Unsqueeze", graph.op("MatMul", graph.input("c", [2, 8]), graph.weight(8, 16)), graph.ints(1))
    scale, shift = graph.ops("Split", modulation, graph.ints(8, 8), outputs=2, axis=2)
    y = graph.op("Mul", graph.op("LayerNormalization", "x", graph.weight(8)), graph.op("Add", scale, graph.const(1.0)))
    graph.on_rows(graph.op("MatMul", graph.op("Add", y, shift), graph.weight(8, 8)))


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("form", SQUARES)
def test_rms_norm_decomposed(net, form: str, ending: str) -> None:
    graph = net((2, 16, 8), axes=(1,))
    mean_square = graph.op("ReduceMean", squared(graph, "x", form), graph.ints(-1))
    graph.on_rows(graph.op("Mul", over_root(graph, "x", mean_square, ending), graph.weight(8)))


@pytest.mark.parametrize("op", ["LayerNormalization", "RMSNormalization"])
def test_norm_with_a_scale_per_token(net, op: str) -> None:
    """Exporters write the absent weight of a norm as ones in the shape of its input; here they are no ones."""
    graph = net((2, 16, 8), axes=(1,), opset=23)
    operands = [graph.weight(1, 16, 8)] + ([graph.weight(2, 16, 8)] if op == "LayerNormalization" else [])
    graph.on_rows(graph.op("Sigmoid", graph.op(op, "x", *operands, axis=-1)))


def test_rms_norm_operator(net) -> None:
    graph = net((2, 16, 8), axes=(1,), opset=23)
    y = graph.op("RMSNormalization", "x", graph.weight(8), epsilon=1e-5)
    y = graph.op("Reshape", y, graph.ints(2, 16, 2, 4))
    graph.on_rows(graph.op("RMSNormalization", y, graph.weight(4), axis=3))


@BATCHES
@pytest.mark.parametrize("groups", [1, 2, 8])
@pytest.mark.parametrize("opset", [18, 20, 21, 23])
def test_group_norm_operator(net, opset: int, groups: int, batch: int) -> None:
    """Before opset 21 it has a scale per group, from then on per channel."""
    graph = net((batch, 8, 6, 6), opset=opset)
    size = 8 if opset >= 21 else groups
    y = graph.op("GroupNormalization", "x", graph.weight(size), graph.weight(size), num_groups=groups, epsilon=1e-6)
    bundle = graph.on_rows(graph.op("Conv", graph.op("Sigmoid", y), graph.weight(4, 8, 3, 3), pads=[1] * 4))
    assert set(bundle.manifest.edits) == {"cached", "corrected"}


def test_group_norm_operator_with_scale_from_the_condition(net) -> None:
    graph = net((1, 8, 6, 6), opset=21)
    scale = graph.op("Mul", graph.weight(8), graph.input("c", [1]))
    y = graph.op("GroupNormalization", "x", scale, graph.weight(8), num_groups=2)
    graph.on_rows(graph.op("Conv", y, graph.weight(4, 8, 3, 3), pads=[1] * 4))


@BATCHES
@pytest.mark.parametrize("out", ["same_view", "flat_view"])
def test_group_norm_by_instance_norm(net, out: str, batch: int) -> None:
    graph = net((batch, 8, 6, 6))
    grouped = graph.op("Reshape", "x", graph.ints(0, 2, -1))
    y = graph.op("InstanceNormalization", grouped, *ones_and_zeros(graph, 2))
    if out == "flat_view":
        y = graph.op("Add", graph.op("Reshape", y, graph.ints(batch, 8, 36)), graph.weight(8, 1))
    y = graph.op("Mul", graph.op("Reshape", y, graph.ints(batch, 8, 6, 6)), graph.weight(8, 1, 1))
    bundle = graph.on_rows(graph.op("Conv", y, graph.weight(4, 8, 3, 3), pads=[1] * 4))
    assert set(bundle.manifest.edits) == {"cached", "corrected"}


VIEWS = {"elements": (2, -1), "channels": (2, 4, 6, 6), "flat_positions": (2, 4, 36)}


@BATCHES
@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("view", VIEWS)
def test_group_norm_decomposed(net, view: str, ending: str, batch: int) -> None:
    graph = net((batch, 8, 6, 6))
    grouped = graph.op("Reshape", "x", graph.ints(batch, *VIEWS[view]))
    axes = tuple(range(2, 1 + len(VIEWS[view])))
    y = normalised(graph, grouped, axes, "Mul" if ending == "Div" else "Pow", ending)
    y = graph.op("Mul", graph.op("Reshape", y, graph.ints(batch, 8, 6, 6)), graph.weight(8, 1, 1))
    bundle = graph.on_rows(graph.op("Conv", y, graph.weight(4, 8, 3, 3), pads=[1] * 4))
    assert set(bundle.manifest.edits) == {"cached", "corrected"}


def test_group_norm_decomposed_with_affine_inside_the_view(net) -> None:
    graph = net((1, 8, 6, 6))
    y = normalised(graph, graph.op("Reshape", "x", graph.ints(1, 2, 4, 6, 6)), (2, 3, 4), "Pow", "Div")
    y = graph.op("Add", graph.op("Mul", y, graph.weight(1, 2, 4, 1, 1)), graph.weight(1, 2, 4, 1, 1))
    bundle = graph.on_rows(graph.op("Sigmoid", graph.op("Reshape", y, graph.ints(1, 8, 6, 6))))
    assert set(bundle.manifest.edits) == {"cached", "corrected"}


def test_group_norm_on_tokens(net) -> None:
    """Attention blocks normalise [B, N, C] tokens as [B, C, N]."""
    graph = net((2, 36, 8), axes=(1,))
    y = graph.op("Reshape", graph.op("Transpose", "x", perm=[0, 2, 1]), graph.ints(0, 4, -1))
    y = graph.op("InstanceNormalization", y, *ones_and_zeros(graph, 4))
    y = graph.op("Mul", graph.op("Reshape", y, graph.ints(2, 8, 36)), graph.weight(8, 1))
    graph.on_rows(graph.op("MatMul", graph.op("Transpose", y, perm=[0, 2, 1]), graph.weight(8, 8)))


def test_norm_of_heads_is_no_group_norm(net) -> None:
    """Queries normalised per head look like groups, but their rows are tokens."""
    graph = net((1, 16, 8), axes=(1,))
    y = normalised(graph, graph.op("Reshape", "x", graph.ints(1, 16, 2, 4)), (3,), "Pow", "Div")
    z = normalised(graph, graph.op("Reshape", "x", graph.ints(1, 16, 8, 1)), (2, 3), "Pow", "Div")
    bundle = graph.on_rows(graph.op("Add", graph.op("Reshape", y, graph.ints(1, 16, 8, 1)), z))
    assert set(bundle.manifest.edits) == {"cached"}


def test_batch_norm(net) -> None:
    graph = net((2, 4, 8, 8))
    positive = graph.const(np.array([0.5, 1, 2, 4], dtype=np.float32))
    y = graph.op("BatchNormalization", "x", graph.weight(4), graph.weight(4), graph.weight(4), positive, epsilon=1e-3)
    graph.on_rows(graph.op("Sigmoid", y))
