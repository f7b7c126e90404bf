"""Reductions over all rows: squeeze-and-excite, response norms, pooled outputs."""

from __future__ import annotations

import pytest


def conv(graph, value: str, channels: int = 4) -> str:
    return graph.op("Conv", value, graph.weight(channels, 4, 3, 3), pads=[1, 1, 1, 1])


def excited(graph, value: str, pooled: str) -> str:
    """Rows scaled by what two pointwise layers make of a statistic."""
    gate = graph.op(
        "Conv", graph.op("Relu", graph.op("Conv", pooled, graph.weight(2, 4, 1, 1))), graph.weight(4, 2, 1, 1)
    )
    return conv(graph, graph.op("Mul", value, graph.op("Sigmoid", gate)))


def plans(bundle) -> dict[str, str]:
    return {row.op: row.plan for row in bundle.manifest.plan}


POOLS = {
    "global": lambda graph, value: graph.op("GlobalAveragePool", value),
    "window": lambda graph, value: graph.op("AveragePool", value, kernel_shape=[8, 8]),
    "mean": lambda graph, value: graph.op("ReduceMean", value, graph.ints(2, 3), keepdims=1),
    "sum": lambda graph, value: graph.op("ReduceSum", value, graph.ints(-1, -2), keepdims=1),
    "squares": lambda graph, value: graph.op("ReduceSumSquare", value, graph.ints(2, 3), keepdims=1),
    "magnitudes": lambda graph, value: graph.op("ReduceL1", value, graph.ints(2, 3), keepdims=1),
}


@pytest.mark.parametrize(("pool", "batch"), [*((pool, 1) for pool in POOLS), ("global", 2), ("squares", 2)])
def test_sum_follows_the_active_rows(net, pool: str, batch: int) -> None:
    graph = net((batch, 4, 8, 8))
    y = conv(graph, "x")
    bundle = graph.on_rows(excited(graph, y, POOLS[pool](graph, y)))
    assert set(bundle.manifest.edits) == {"cached", "corrected"}
    assert plans(bundle)["Sigmoid"] == "statistic"
    # A held gate is the same for all edits of a run, so they share one.
    assert bundle.manifest.stacked["cached"].reason is None


EXTREMES = {
    "global": lambda graph, value: graph.op("GlobalMaxPool", value),
    "window": lambda graph, value: graph.op("MaxPool", value, kernel_shape=[8, 8]),
    "least": lambda graph, value: graph.op("ReduceMin", value, graph.ints(2, 3)),
    "power": lambda graph, value: graph.op("GlobalLpPool", value, p=3),
}


@pytest.mark.parametrize("pool", EXTREMES)
def test_extreme_is_taken_over_all_rows(net, pool: str) -> None:
    graph = net()
    y = conv(graph, "x")
    bundle = graph.on_rows(excited(graph, y, EXTREMES[pool](graph, y)))
    assert set(bundle.manifest.edits) == {"cached", "corrected"}
    assert bundle.manifest.plan[1].plan == "statistic"


def test_response_norm(net) -> None:
    """ConvNeXt V2: the L2 norm of every channel over its mean over channels."""
    graph = net((2, 4, 8, 8))
    y = conv(graph, "x")
    size = graph.op("ReduceL2", y, graph.ints(2, 3), keepdims=1)
    share = graph.op("Div", size, graph.op("Add", graph.op("ReduceMean", size, graph.ints(1)), graph.const(1e-6)))
    scaled = graph.op("Mul", graph.op("Mul", y, share), graph.weight(4, 1, 1))
    bundle = graph.on_rows(conv(graph, graph.op("Add", scaled, y)))
    assert set(bundle.manifest.edits) == {"cached", "corrected"}


def test_attention_between_channels(net) -> None:
    """XCiT and Restormer: rows of queries and keys are normalised over the positions, their products softmaxed."""
    graph = net((1, 16, 8), axes=(1,))
    query, key, value = (graph.op("MatMul", "x", graph.weight(8, 8)) for _ in range(3))
    unit = [
        graph.op("Div", part, graph.op("Clip", graph.op("ReduceL2", part, graph.ints(1)), graph.const(1e-6)))
        for part in (query, key)
    ]
    scores = graph.op("MatMul", graph.op("Transpose", unit[0], perm=[0, 2, 1]), unit[1])
    weights = graph.op("Transpose", graph.op("Softmax", scores, axis=-1), perm=[0, 2, 1])
    bundle = graph.on_rows(graph.op("MatMul", graph.op("MatMul", value, weights), graph.weight(8, 8)))
    assert bundle.manifest.coverage == 1.0


def test_pooled_tokens_modulate_a_block(net) -> None:
    graph = net((2, 16, 8), axes=(1,))
    pooled = graph.op("ReduceMean", "x", graph.ints(1), keepdims=0)
    shift = graph.op("Unsqueeze", graph.op("Gemm", pooled, graph.weight(8, 8), graph.weight(8)), graph.ints(1))
    graph.on_rows(graph.op("MatMul", graph.op("Add", "x", shift), graph.weight(8, 8)))


def test_global_feature_is_spread_out_and_concatenated(net) -> None:
    """ASPP: a pooled branch, enlarged to the image again."""
    graph = net()
    pooled = graph.op("Relu", graph.op("Conv", graph.op("GlobalAveragePool", "x"), graph.weight(2, 4, 1, 1)))
    spread = graph.op("Resize", pooled, "", "", graph.ints(1, 2, 8, 8), mode="linear")
    y = graph.op("Concat", conv(graph, "x"), spread, axis=1)
    graph.on_rows(graph.op("Conv", y, graph.weight(4, 6, 1, 1)))


def test_pooled_output_follows_in_every_mode(net) -> None:
    graph = net()
    y = conv(graph, "x")
    bundle = graph.export(y, graph.op("GlobalAveragePool", y))
    assert set(bundle.manifest.edits) == {"cached"}
    assert [row.plan for row in bundle.manifest.plan] == ["incremental", "incremental"]


def test_reduction_over_a_part_of_the_grid_is_dense_and_correct(net) -> None:
    graph = net()
    strip = graph.op("ReduceMean", conv(graph, "x"), graph.ints(3))
    bundle = graph.export(conv(graph, graph.op("Mul", "x", graph.op("Sigmoid", strip))))
    assert "a part of the grid" in {str(row.reason) for row in bundle.manifest.plan if row.op == "ReduceMean"}.pop()
    assert bundle.manifest.plan[-1].plan == "incremental"


def test_sums_of_other_types(net) -> None:
    """A count of positions in whole numbers and a mean in double precision."""
    graph = net()
    above = graph.op("Cast", graph.op("Greater", "x", graph.const(0.5)), to=7)
    count = graph.op("Cast", graph.op("ReduceSum", above, graph.ints(2, 3)), to=1)
    mean = graph.op("Cast", graph.op("ReduceMean", graph.op("Cast", "x", to=11), graph.ints(2, 3)), to=1)
    y = graph.op("Sub", graph.op("Div", "x", graph.op("Add", count, graph.const(1.0))), mean)
    graph.on_rows(conv(graph, y))
