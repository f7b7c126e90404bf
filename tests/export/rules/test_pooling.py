"""Pooling windows of every kind are computed on rows."""

from __future__ import annotations

import pytest

WINDOWS = {
    "halving": {"kernel_shape": [2, 2], "strides": [2, 2]},
    "padded": {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]},
    "strided": {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]},
    "uneven_pads": {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [0, 0, 1, 1]},
    "ceil": {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1},
    "ceil_padded": {"kernel_shape": [3, 4], "strides": [3, 3], "pads": [0, 1, 0, 0], "ceil_mode": 1},
    "same_upper": {"kernel_shape": [3, 2], "strides": [2, 1], "auto_pad": "SAME_UPPER"},
    "same_lower": {"kernel_shape": [2, 2], "strides": [1, 1], "auto_pad": "SAME_LOWER"},
}


@pytest.mark.parametrize("opset", [18, 19, 22])
@pytest.mark.parametrize("window", WINDOWS)
def test_mean_with_and_without_pads(net, window: str, opset: int) -> None:
    graph = net((2, 4, 8, 8), opset=opset)
    inner = graph.op("AveragePool", "x", **WINDOWS[window])
    counted = graph.op("AveragePool", "x", count_include_pad=1, **WINDOWS[window])
    graph.on_rows(graph.op("Sub", inner, graph.op("Sigmoid", counted)))


@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("window", WINDOWS)
def test_maximum(net, window: str, batch: int) -> None:
    graph = net((batch, 4, 8, 8))
    graph.on_rows(graph.op("Sigmoid", graph.op("MaxPool", "x", **WINDOWS[window])))


def test_dilated(net) -> None:
    graph = net(opset=19)
    window = {"kernel_shape": [3, 3], "dilations": [2, 2], "pads": [2, 2, 2, 2]}
    mean = graph.op("AveragePool", "x", **window)
    graph.on_rows(graph.op("Sub", graph.op("MaxPool", "x", **window), mean))


def test_one_dimensional(net) -> None:
    graph = net((1, 4, 24), axes=(2,))
    y = graph.op("MaxPool", "x", kernel_shape=[3], strides=[2], pads=[1, 0])
    graph.on_rows(graph.op("AveragePool", y, kernel_shape=[2], strides=[2], ceil_mode=1))


def test_power_mean_on_rows_or_correct(net) -> None:
    graph = net()
    y = graph.op("LpPool", graph.op("Sigmoid", "x"), kernel_shape=[2, 2], strides=[2, 2], p=2)
    graph.export(graph.op("Sigmoid", y))
