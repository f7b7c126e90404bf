"""Attention in the forms that exporters emit: every heavy product is computed on rows."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto

TOKENS, HEADS, DEPTH = 16, 4, 8
WIDTH = HEADS * DEPTH
BATCHES = pytest.mark.parametrize("batch", [1, 2])


def tokens(net, batch: int = 1, opset: int = 18):
    return net((batch, TOKENS, WIDTH), axes=(1,), opset=opset)


def split(graph, value: str, batch: int, heads: int = HEADS) -> str:
    """[B, N, C] -> [B, heads, N, depth]."""
    view = graph.op("Reshape", value, graph.ints(batch, TOKENS, heads, DEPTH))
    return graph.op("Transpose", view, perm=[0, 2, 1, 3])


def joined(graph, value: str, batch: int) -> str:
    return graph.op("Reshape", graph.op("Transpose", value, perm=[0, 2, 1, 3]), graph.ints(batch, TOKENS, WIDTH))


def projected(graph, value: str, width: int = WIDTH) -> str:
    return graph.op("MatMul", value, graph.weight(WIDTH, width))


def attended(graph, query: str, key: str, value: str, mask: str | None = None) -> str:
    scores = graph.op("MatMul", query, graph.op("Transpose", key, perm=[0, 1, 3, 2]))
    scores = graph.op("Mul", scores, graph.const(DEPTH**-0.5))
    if mask is not None:
        scores = graph.op("Add", scores, mask)
    return graph.op("MatMul", graph.op("Softmax", scores, axis=-1), value)


def three(graph, batch: int) -> list[str]:
    return [split(graph, projected(graph, "x"), batch) for _ in range(3)]


def mask_of(graph, shape: tuple[int, ...]) -> str:
    mask = np.where(graph.generator.random(shape) < 0.3, -1e4, 0.0).astype(np.float32)
    mask[..., 0] = 0
    return graph.const(mask)


MASKS = {"none": None, "keys": (1, 1, 1, 16), "pairs": (16, 16), "pairs_per_head": (1, HEADS, 16, 16)}


@BATCHES
@pytest.mark.parametrize("mask", MASKS)
def test_matmul_and_softmax(net, mask: str, batch: int) -> None:
    graph, shape = tokens(net, batch), MASKS[mask]
    y = attended(graph, *three(graph, batch), None if shape is None else mask_of(graph, shape))
    graph.on_rows(projected(graph, joined(graph, y, batch)))


def test_mask_from_a_condition(net) -> None:
    graph = tokens(net, 2)
    allowed = graph.op("Unsqueeze", graph.input("allowed", [2, 1, TOKENS], TensorProto.BOOL), graph.ints(1))
    mask = graph.op("Where", allowed, graph.const(0.0), graph.const(-1e4))
    graph.on_rows(projected(graph, joined(graph, attended(graph, *three(graph, 2), mask), 2)))


def test_mask_from_the_editable_ids(net) -> None:
    """Padding, told from the ids: the mask varies along the keys of the very sequence that is edited."""
    graph = tokens(net)
    padding = graph.op("Less", graph.op("ReduceMax", "x", graph.ints(2), keepdims=0), graph.const(0.5))
    mask = graph.op("Where", padding, graph.const(-1e4), graph.const(0.0))
    mask = graph.op("Reshape", mask, graph.ints(1, 1, 1, TOKENS))
    graph.on_rows(projected(graph, joined(graph, attended(graph, *three(graph, 1), mask), 1)))


EQUATIONS = {
    "heads_first": ("bhqd,bhkd->bhqk", "bhqk,bhkd->bhqd", [0, 2, 1, 3]),
    "tokens_first": ("bqhd,bkhd->bhqk", "bhqk,bkhd->bqhd", None),
    "queries_in_front": ("bqhd,bkhd->bqhk", "bqhk,bkhd->bqhd", None),
}


@BATCHES
@pytest.mark.parametrize("form", EQUATIONS)
def test_einsum(net, form: str, batch: int) -> None:
    graph = tokens(net, batch)
    scores, mix, perm = EQUATIONS[form]
    query, key, value = (
        graph.op("Reshape", projected(graph, "x"), graph.ints(batch, TOKENS, HEADS, DEPTH)) for _ in range(3)
    )
    if perm is not None:
        query, key, value = (graph.op("Transpose", part, perm=perm) for part in (query, key, value))
    logits = graph.op("Mul", graph.op("Einsum", query, key, equation=scores), graph.const(DEPTH**-0.5))
    y = graph.op("Einsum", graph.op("Softmax", logits, axis=-1), value, equation=mix)
    y = joined(graph, y, batch) if perm is not None else graph.op("Reshape", y, graph.ints(batch, TOKENS, WIDTH))
    graph.on_rows(projected(graph, y))


@BATCHES
def test_heads_folded_into_the_batch(net, batch: int) -> None:
    graph = tokens(net, batch)
    folded = [graph.op("Reshape", part, graph.ints(batch * HEADS, TOKENS, DEPTH)) for part in three(graph, batch)]
    scores = graph.op("Einsum", folded[0], folded[1], equation="bid,bjd->bij")
    y = graph.op("Einsum", graph.op("Softmax", scores, axis=-1), folded[2], equation="bij,bjd->bid")
    y = graph.op("Reshape", y, graph.ints(batch, HEADS, TOKENS, DEPTH))
    graph.on_rows(projected(graph, joined(graph, y, batch)))


@BATCHES
@pytest.mark.parametrize("repeat", ["Expand", "Tile"])
def test_grouped_heads(net, repeat: str, batch: int) -> None:
    """Two heads of keys and values, each for two heads of queries."""
    graph = tokens(net, batch)
    parts = []
    for _ in range(2):
        part = graph.op("Unsqueeze", split(graph, projected(graph, "x", 2 * DEPTH), batch, 2), graph.ints(2))
        if repeat == "Expand":
            part = graph.op("Expand", part, graph.ints(batch, 2, 2, TOKENS, DEPTH))
        else:
            part = graph.op("Tile", part, graph.ints(1, 1, 2, 1, 1))
        parts.append(graph.op("Reshape", part, graph.ints(batch, HEADS, TOKENS, DEPTH)))
    y = attended(graph, split(graph, projected(graph, "x"), batch), *parts)
    graph.on_rows(projected(graph, joined(graph, y, batch)))


@BATCHES
@pytest.mark.parametrize("packing", ["gather", "split_channels", "split_and_squeeze", "slice"])
def test_packed_projection(net, packing: str, batch: int) -> None:
    graph = tokens(net, batch)
    packed = projected(graph, "x", 3 * WIDTH)
    if packing == "split_channels":
        parts = [
            split(graph, part, batch)
            for part in graph.ops("Split", packed, graph.ints(WIDTH, WIDTH, WIDTH), outputs=3, axis=-1)
        ]
    else:
        packed = graph.op("Reshape", packed, graph.ints(batch, TOKENS, 3, HEADS, DEPTH))
        packed = graph.op("Transpose", packed, perm=[2, 0, 3, 1, 4])
        if packing == "gather":
            parts = [graph.op("Gather", packed, graph.const(np.array(i, np.int64)), axis=0) for i in range(3)]
        elif packing == "slice":
            cut = [graph.op("Slice", packed, graph.ints(i), graph.ints(i + 1), graph.ints(0)) for i in range(3)]
            parts = [graph.op("Squeeze", part, graph.ints(0)) for part in cut]
        else:
            cut = graph.ops("Split", packed, graph.ints(1, 1, 1), outputs=3, axis=0)
            parts = [graph.op("Squeeze", part, graph.ints(0)) for part in cut]
    graph.on_rows(projected(graph, joined(graph, attended(graph, *parts), batch)))


def test_positions_of_an_image(net) -> None:
    graph = net((1, 4, 6, 6))
    flat = graph.op("Transpose", graph.op("Reshape", "x", graph.ints(1, 4, 36)), perm=[0, 2, 1])
    query, key, value = (graph.op("MatMul", flat, graph.weight(4, 4)) for _ in range(3))
    scores = graph.op("MatMul", query, graph.op("Transpose", key, perm=[0, 2, 1]))
    y = graph.op("MatMul", graph.op("Softmax", scores, axis=-1), value)
    y = graph.op("Reshape", graph.op("Transpose", y, perm=[0, 2, 1]), graph.ints(1, 4, 6, 6))
    graph.on_rows(graph.op("Add", y, "x"))


@BATCHES
def test_keys_from_a_condition(net, batch: int) -> None:
    graph = tokens(net, batch)
    text = graph.input("text", [batch, TOKENS, WIDTH])
    key, value = (split(graph, projected(graph, text), batch) for _ in range(2))
    y = attended(graph, split(graph, projected(graph, "x"), batch), key, value)
    bundle = graph.on_rows(projected(graph, joined(graph, y, batch)))
    assert {row.plan for row in bundle.manifest.plan} == {"incremental", "hoisted"}


def test_queries_from_a_condition_sum_over_the_rows(net) -> None:
    """As latents do that read an image; only their softmax looks at all rows again."""
    graph = tokens(net)
    query = split(graph, projected(graph, graph.input("latents", [1, TOKENS, WIDTH])), 1)
    key, value = (split(graph, projected(graph, "x"), 1) for _ in range(2))
    bundle = graph.export(graph.op("ReduceMean", joined(graph, attended(graph, query, key, value), 1), graph.ints(1)))
    assert [row.op for row in bundle.manifest.plan if row.plan == "densified"] == ["Softmax"]
    assert bundle.manifest.coverage == 1.0


# ONNX Runtime's kernel wants masks with one line per query.
OPERATOR_MASKS = {
    "none": None,
    "keys": np.tile(np.array([0.0] * 12 + [-1e4] * 4, np.float32), (1, 1, 16, 1)),
    "pairs": np.triu(np.full((16, 16), -1e4, np.float32), 3),
    "allowed_pairs": np.tril(np.ones((16, 16), bool), 2),
    "allowed_pairs_of_every_head": (np.arange(1024) % 5 != 0).reshape(1, 4, 16, 16),
}


def assert_stacks(bundle) -> None:
    """Several edits share a run, which the export compared with one run each."""
    assert bundle.manifest.coverage == 1.0
    assert bundle.manifest.stacked["cached"].reason is None
    assert "stacked.cached" in bundle.manifest.verification
    assert bundle.manifest.stacked["cached"].graph is not None
    assert set(bundle.manifest.stacked["cached"].graph.cached) <= set(bundle.manifest.edits["cached"].cached)


@BATCHES
@pytest.mark.parametrize("mask", OPERATOR_MASKS)
@pytest.mark.parametrize("heads", ["split", "packed"])
def test_attention_operator(net, heads: str, mask: str, batch: int) -> None:
    graph = tokens(net, batch, opset=23)
    array = OPERATOR_MASKS[mask]
    masks = [] if array is None else [graph.const(array)]
    if heads == "split":
        y = joined(graph, graph.op("Attention", *three(graph, batch), *masks, scale=0.3), batch)
    else:
        parts = [projected(graph, "x") for _ in range(3)]
        y = graph.op("Attention", *parts, *masks, q_num_heads=HEADS, kv_num_heads=HEADS, softcap=5.0)
    assert_stacks(graph.on_rows(projected(graph, y)))


@BATCHES
@pytest.mark.parametrize("heads", ["split", "packed"])
def test_attention_operator_with_grouped_heads(net, heads: str, batch: int) -> None:
    graph = tokens(net, batch, opset=23)
    narrow = [projected(graph, "x", 2 * DEPTH) for _ in range(2)]
    query = projected(graph, "x")
    if heads == "split":
        keys = [split(graph, part, batch, 2) for part in narrow]
        y = joined(graph, graph.op("Attention", split(graph, query, batch), *keys), batch)
    else:
        y = graph.op("Attention", query, *narrow, q_num_heads=HEADS, kv_num_heads=2)
    assert_stacks(graph.on_rows(projected(graph, y)))


@pytest.mark.parametrize("heads", ["split", "packed"])
def test_causal_attention_operator(net, heads: str) -> None:
    graph = tokens(net, 2, opset=23)
    if heads == "split":
        y = joined(graph, graph.op("Attention", *three(graph, 2), is_causal=1), 2)
    else:
        parts = [projected(graph, "x") for _ in range(3)]
        y = graph.op("Attention", *parts, q_num_heads=HEADS, kv_num_heads=HEADS, is_causal=1)
    assert_stacks(graph.on_rows(projected(graph, y)))


def test_attention_operator_with_a_mask_from_the_editable_ids(net) -> None:
    graph = tokens(net, opset=23)
    keep = graph.op("Less", graph.op("ReduceMin", "x", graph.ints(2), keepdims=0), graph.const(-1.0))
    mask = graph.op("Expand", graph.op("Reshape", keep, graph.ints(1, 1, 1, TOKENS)), graph.ints(1, 1, TOKENS, TOKENS))
    y = joined(graph, graph.op("Attention", *three(graph, 1), mask), 1)
    assert_stacks(graph.on_rows(projected(graph, y)))


def test_attention_operator_that_returns_its_keys_is_dense_and_correct(net) -> None:
    graph = tokens(net, opset=23)
    query, key, value = three(graph, 1)
    past = [graph.input(name, [1, HEADS, 2, DEPTH]) for name in ("past_key", "past_value")]
    results = graph.ops("Attention", query, key, value, "", *past, outputs=3)
    bundle = graph.export(*(graph.op("Sigmoid", result) for result in results))
    assert any("past keys" in (row.reason or "") for row in bundle.manifest.plan)
