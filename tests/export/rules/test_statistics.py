"""Reductions over all rows: squeeze-and-excite, response norms, pooled outputs."""

from __future__ import annotations

import pytest

BATCHES = pytest.mark.parametrize("batch", [1, 2])


def conv(graph, value: str, channels: int = 4) -> str:
    return graph.op("Conv", value, graph.weight(channels, 4, 3, 3), pads=[1, 1, 1, 1])


def excited(graph, value: str, pooled: str) -> str:
    """Rows scaled by what two pointwise layers make of a statistic."""
    gate = graph.op("Conv", graph.op("Relu", graph.op("Conv", pooled, graph.weight(2, 4, 1, 1))), graph.weight(4, 2, 1, 1))
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


@BATCHES
@pytest.mark.parametrize("pool", POOLS)
def test_sum_follows_the_active_rows(net, pool: str, batch: int) -> None:
    graph = net((batch, 4, 8, 8))
    y = conv(graph, "x")
    bundle = graph.on_rows(excited(graph, y, POOLS[pool](graph, y)))
    assert set(bundle.manifest.edits) == {"cached", "corrected"}
    assert plans(bundle)["Sigmoid"] == "statistic"


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
