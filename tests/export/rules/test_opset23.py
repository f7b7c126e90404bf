"""Operators that opset 20 to 24 brought, alone and as a language model made of them."""

from __future__ import annotations

import numpy as np
import pytest

TOKENS, HEADS, DEPTH = 16, 2, 8
WIDTH = HEADS * DEPTH
BATCHES = pytest.mark.parametrize("batch", [1, 2])


def tables(graph, shape: tuple[int, ...]) -> tuple[str, str]:
    angles = graph.generator.uniform(0, 3, shape)
    return graph.const(np.cos(angles).astype(np.float32)), graph.const(np.sin(angles).astype(np.float32))


def heads_of(graph, value: str, batch: int) -> str:
    view = graph.op("Reshape", value, graph.ints(batch, TOKENS, HEADS, DEPTH))
    return graph.op("Transpose", view, perm=[0, 2, 1, 3])


@BATCHES
@pytest.mark.parametrize("interleaved", [0, 1])
@pytest.mark.parametrize("rotated", [0, 4])
@pytest.mark.parametrize("form", ["split", "packed"])
def test_rotary_embedding_with_a_table_per_token(net, form: str, rotated: int, interleaved: int, batch: int) -> None:
    graph = net((batch, TOKENS, WIDTH), axes=(1,), opset=23)
    angles = tables(graph, (batch, TOKENS, (rotated or DEPTH) // 2))
    options = {"interleaved": interleaved, "rotary_embedding_dim": rotated}
    if form == "split":
        y = graph.op("RotaryEmbedding", heads_of(graph, "x", batch), *angles, **options)
    else:
        y = graph.op("RotaryEmbedding", "x", *angles, num_heads=HEADS, **options)
    graph.on_rows(graph.op("Sigmoid", y))


@BATCHES
@pytest.mark.parametrize("form", ["split", "packed"])
def test_rotary_embedding_with_position_ids(net, form: str, batch: int) -> None:
    graph = net((batch, TOKENS, WIDTH), axes=(1,), opset=23)
    positions = graph.const(np.stack([np.arange(TOKENS), np.arange(TOKENS)[::-1]])[:batch].astype(np.int64))
    operands = (*tables(graph, (32, DEPTH // 2)), positions)
    if form == "split":
        y = graph.op("RotaryEmbedding", heads_of(graph, "x", batch), *operands)
    else:
        y = graph.op("RotaryEmbedding", "x", *operands, num_heads=HEADS)
    graph.on_rows(graph.op("Sigmoid", y))


@pytest.mark.parametrize("approximate", ["none", "tanh"])
def test_gelu(net, approximate: str) -> None:
    graph = net(opset=20)
    graph.on_rows(graph.op("Gelu", "x", approximate=approximate))


@pytest.mark.parametrize("silu", ["Sigmoid", "HardSwish", "Mish", "Swish"])
def test_silu_and_its_like(net, silu: str) -> None:
    graph = net(opset=24 if silu == "Swish" else 18)
    y = graph.op("Mul", "x", graph.op("Sigmoid", "x")) if silu == "Sigmoid" else graph.op(silu, "x")
    graph.on_rows(graph.op("Conv", y, graph.weight(4, 4, 3, 3), pads=[1] * 4))


@BATCHES
def test_language_model(net, batch: int) -> None:
    """LLaDA in miniature: RMS norms, rotary embedding, attention with grouped heads and a gated feed-forward part."""
    graph = net((batch, TOKENS, WIDTH), axes=(1,), opset=23)
    angles = tables(graph, (batch, TOKENS, DEPTH // 2))
    y = "x"
    for _ in range(2):
        normed = graph.op("RMSNormalization", y, graph.weight(WIDTH), epsilon=1e-5)
        query = graph.op(
            "RotaryEmbedding", heads_of(graph, graph.op("MatMul", normed, graph.weight(WIDTH, WIDTH)), batch), *angles
        )
        key = graph.op("RotaryEmbedding", graph.op("MatMul", normed, graph.weight(WIDTH, DEPTH)), *angles, num_heads=1)
        key = graph.op("Reshape", key, graph.ints(batch, 1, TOKENS, DEPTH))
        value = graph.op("MatMul", normed, graph.weight(WIDTH, DEPTH))
        value = graph.op("Reshape", value, graph.ints(batch, 1, TOKENS, DEPTH))
        mixed = graph.op("Transpose", graph.op("Attention", query, key, value), perm=[0, 2, 1, 3])
        mixed = graph.op("Reshape", mixed, graph.ints(batch, TOKENS, WIDTH))
        y = graph.op("Add", y, graph.op("MatMul", mixed, graph.weight(WIDTH, WIDTH)))
        normed = graph.op("RMSNormalization", y, graph.weight(WIDTH))
        gate, up = (graph.op("MatMul", normed, graph.weight(WIDTH, 3 * WIDTH)) for _ in range(2))
        gated = graph.op("Mul", graph.op("Mul", gate, graph.op("Sigmoid", gate)), up)
        y = graph.op("Add", y, graph.op("MatMul", gated, graph.weight(3 * WIDTH, WIDTH)))
    manifest = graph.on_rows(graph.op("RMSNormalization", y, graph.weight(WIDTH))).manifest
    assert manifest.coverage == 1.0
    assert manifest.stacked["cached"].reason is None
