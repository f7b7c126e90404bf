"""Attention without scores: keys times values are summed over all tokens, and only the active ones are computed."""

from __future__ import annotations

import numpy as np
import pytest

TOKENS, HEADS, DEPTH = 16, 4, 8
WIDTH = HEADS * DEPTH
BATCHES = pytest.mark.parametrize("batch", [1, 2])


def projected(graph, value: str) -> str:
    return graph.op("MatMul", value, graph.weight(WIDTH, WIDTH))


def heads(graph, value: str, batch: int, perm: tuple[int, ...] = (0, 2, 1, 3)) -> str:
    return graph.op("Transpose", graph.op("Reshape", value, graph.ints(batch, TOKENS, HEADS, DEPTH)), perm=perm)


def merged(graph, value: str, batch: int) -> str:
    return graph.op("Reshape", graph.op("Transpose", value, perm=[0, 2, 1, 3]), graph.ints(batch, TOKENS, WIDTH))


def relu(graph, value: str) -> str:
    return graph.op("Relu", value)


def elu_plus_one(graph, value: str) -> str:
    return graph.op("Add", graph.op("Elu", value), graph.const(1.0))


def softmax(graph, value: str) -> str:
    return graph.op("Softmax", value, axis=-1)


FEATURES = pytest.mark.parametrize(("feature", "batch"), [(relu, 1), (elu_plus_one, 2), (softmax, 1)])


def three(graph, batch: int, feature) -> list[str]:
    query, key, value = (heads(graph, projected(graph, "x"), batch) for _ in range(3))
    return [feature(graph, query), feature(graph, key), value]


def over(graph, numerator: str, normaliser: str) -> str:
    return graph.op("Div", numerator, graph.op("Add", normaliser, graph.const(1e-3)))


@FEATURES
def test_sum_of_keys_normalises(net, feature, batch: int) -> None:
    """Katharopoulos et al.: phi(q) (phi(k)^T v) / (phi(q) sum phi(k))."""
    graph = net((batch, TOKENS, WIDTH), axes=(1,))
    query, key, value = three(graph, batch, feature)
    keys_values = graph.op("MatMul", graph.op("Transpose", key, perm=[0, 1, 3, 2]), value)
    total = graph.op("Unsqueeze", graph.op("ReduceSum", key, graph.ints(2), keepdims=0), graph.ints(3))
    mixed = over(graph, graph.op("MatMul", query, keys_values), graph.op("MatMul", query, total))
    bundle = graph.on_rows(projected(graph, merged(graph, mixed, batch)))
    assert set(bundle.manifest.edits) == {"cached"}
    assert bundle.manifest.coverage == 1.0


def test_mean_of_keys_normalises(net) -> None:
    """The mean of the scaled keys goes with the product too, though means are held elsewhere."""
    graph = net((1, TOKENS, WIDTH), axes=(1,))
    query, key, value = three(graph, 1, elu_plus_one)
    scaled = graph.op("Mul", key, graph.const(TOKENS**-0.5))
    keys_values = graph.op("MatMul", graph.op("Transpose", scaled, perm=[0, 1, 3, 2]), value)
    mean = graph.op("Transpose", graph.op("ReduceMean", key, graph.ints(2), keepdims=1), perm=[0, 1, 3, 2])
    mixed = over(graph, graph.op("MatMul", query, keys_values), graph.op("MatMul", query, mean))
    bundle = graph.on_rows(projected(graph, merged(graph, mixed, 1)))
    assert set(bundle.manifest.edits) == {"cached"}


@BATCHES
def test_einsums(net, batch: int) -> None:
    """Performer: einsums on [B, N, heads, depth], the normaliser as an einsum with one."""
    graph = net((batch, TOKENS, WIDTH), axes=(1,))
    query, key, value = (
        graph.op("Reshape", projected(graph, "x"), graph.ints(batch, TOKENS, HEADS, DEPTH)) for _ in range(3)
    )
    query, key = relu(graph, query), relu(graph, key)
    keys_values = graph.op("Einsum", key, value, equation="bn...d, bn...e -> b...de")
    total = graph.op("Einsum", key, graph.const(np.ones(TOKENS, np.float32)), equation="bnhd,n->bhd")
    numerator = graph.op("Einsum", query, keys_values, equation="bnhd,bhde->bnhe")
    normaliser = graph.op("Unsqueeze", graph.op("Einsum", query, total, equation="bnhd,bhd->bnh"), graph.ints(3))
    mixed = graph.op("Reshape", over(graph, numerator, normaliser), graph.ints(batch, TOKENS, WIDTH))
    graph.on_rows(projected(graph, mixed))


@BATCHES
def test_values_padded_with_ones(net, batch: int) -> None:
    """SANA and EfficientViT: [B, heads, depth, N]; a row of ones behind the values makes the normaliser."""
    graph = net((batch, TOKENS, WIDTH), axes=(1,))
    across = (0, 2, 3, 1)
    query, key, value = (heads(graph, projected(graph, "x"), batch, across) for _ in range(3))
    query, key = relu(graph, query), graph.op("Transpose", relu(graph, key), perm=[0, 1, 3, 2])
    pads = graph.ints(0, 0, 0, 0, 0, 0, 1, 0)
    value = graph.op("Pad", value, pads, graph.const(1.0))
    mixed = graph.op("MatMul", graph.op("MatMul", value, key), query)
    first, last = graph.ops("Split", mixed, graph.ints(DEPTH, 1), outputs=2, axis=2)
    mixed = graph.op("Transpose", over(graph, first, last), perm=[0, 3, 1, 2])
    bundle = graph.on_rows(projected(graph, graph.op("Reshape", mixed, graph.ints(batch, TOKENS, WIDTH))))
    assert bundle.manifest.coverage == 1.0


@BATCHES
def test_on_an_image(net, batch: int) -> None:
    """Keys and values as einsums over both spatial axes."""
    graph = net((batch, 4, 8, 8))
    key, value = (graph.op("Conv", "x", graph.weight(4, 4, 3, 3), pads=[1] * 4) for _ in range(2))
    keys_values = graph.op("Einsum", relu(graph, key), value, equation="bchw,bdhw->bcd")
    scaled = graph.op("Mul", keys_values, graph.const(1 / 64))
    mixed = graph.op("Einsum", relu(graph, "x"), scaled, equation="bchw,bcd->bdhw")
    graph.on_rows(graph.op("Conv", mixed, graph.weight(4, 4, 1, 1)))


def test_sum_against_weights(net) -> None:
    """Pooling by weights per position: one operand is the same in every edit."""
    graph = net()
    pooled = graph.op("Einsum", "x", graph.weight(8, 8), equation="bchw,hw")
    gate = graph.op("Reshape", graph.op("Sigmoid", pooled), graph.ints(1, 4, 1, 1))
    graph.on_rows(graph.op("Conv", graph.op("Mul", "x", gate), graph.weight(4, 4, 1, 1)))
