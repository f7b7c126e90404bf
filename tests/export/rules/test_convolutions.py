"""Convolutions of every kind are computed on rows."""

from __future__ import annotations

from typing import Any

import pytest

BATCHES = pytest.mark.parametrize("batch", [1, 2])

CONVOLUTIONS: dict[str, tuple[tuple[int, ...], dict[str, Any]]] = {
    "1x1": ((6, 4, 1, 1), {}),
    "1x1_strided": ((6, 4, 1, 1), {"strides": [2, 2]}),
    "1x1_grouped": ((6, 2, 1, 1), {"group": 2}),
    "3x3": ((6, 4, 3, 3), {"pads": [1, 1, 1, 1]}),
    "3x3_valid": ((6, 4, 3, 3), {}),
    "strided": ((6, 4, 3, 3), {"pads": [1, 1, 1, 1], "strides": [2, 2]}),
    "strided_with_uneven_pads": ((6, 4, 3, 3), {"pads": [0, 0, 1, 1], "strides": [2, 2]}),
    "grouped": ((6, 2, 3, 3), {"pads": [1, 1, 1, 1], "group": 2}),
    "depthwise": ((4, 1, 3, 3), {"pads": [1, 1, 1, 1], "group": 4}),
    "depthwise_with_multiplier": ((8, 1, 5, 5), {"pads": [2, 2, 2, 2], "group": 4}),
    "dilated": ((6, 4, 3, 3), {"pads": [2, 2, 2, 2], "dilations": [2, 2]}),
    "row_kernel": ((6, 4, 1, 7), {"pads": [0, 3, 0, 3]}),
    "same_upper": ((6, 4, 4, 4), {"auto_pad": "SAME_UPPER", "strides": [2, 2]}),
    "same_lower": ((6, 4, 4, 4), {"auto_pad": "SAME_LOWER"}),
}

TRANSPOSED: dict[str, tuple[tuple[int, ...], dict[str, Any]]] = {
    "doubling": ((4, 6, 2, 2), {"strides": [2, 2]}),
    "overlapping": ((4, 6, 4, 4), {"strides": [2, 2], "pads": [1, 1, 1, 1]}),
    "output_padding": ((4, 6, 3, 3), {"strides": [2, 2], "pads": [1, 1, 1, 1], "output_padding": [1, 1]}),
    "output_shape": ((4, 6, 3, 3), {"strides": [2, 2], "output_shape": [16, 16]}),
    "same_upper": ((4, 6, 3, 3), {"strides": [2, 2], "auto_pad": "SAME_UPPER"}),
    "same_lower": ((4, 6, 3, 3), {"strides": [2, 2], "auto_pad": "SAME_LOWER"}),
    "dilated": ((4, 6, 3, 3), {"strides": [2, 2], "pads": [2, 2, 2, 2], "dilations": [2, 2]}),
    "grouped": ((4, 3, 4, 4), {"strides": [2, 2], "pads": [1, 1, 1, 1], "group": 2}),
    "depthwise": ((4, 1, 4, 4), {"strides": [2, 2], "pads": [1, 1, 1, 1], "group": 4}),
}


@BATCHES
@pytest.mark.parametrize("case", CONVOLUTIONS)
def test_convolution(net, case: str, batch: int) -> None:
    kernel, attributes = CONVOLUTIONS[case]
    graph = net((batch, 4, 8, 8))
    y = graph.op("Sigmoid", graph.op("Conv", "x", graph.weight(*kernel), graph.weight(kernel[0]), **attributes))
    assert graph.on_rows(y).manifest.flops > 0


@BATCHES
@pytest.mark.parametrize("case", TRANSPOSED)
def test_transposed_convolution(net, case: str, batch: int) -> None:
    kernel, attributes = TRANSPOSED[case]
    graph = net((batch, 4, 8, 8))
    bias = graph.weight(kernel[1] * attributes.get("group", 1))
    y = graph.op("Sigmoid", graph.op("ConvTranspose", "x", graph.weight(*kernel), bias, **attributes))
    assert graph.on_rows(y).manifest.flops > 0


@BATCHES
def test_one_dimensional(net, batch: int) -> None:
    graph = net((batch, 4, 24), axes=(2,))
    y = graph.op("Conv", "x", graph.weight(6, 4, 3), pads=[1, 1], strides=[2])
    y = graph.op("Conv", graph.op("Sigmoid", y), graph.weight(6, 3, 5), pads=[4, 4], dilations=[2], group=2)
    y = graph.op("ConvTranspose", graph.op("Sigmoid", y), graph.weight(6, 4, 4), pads=[1, 1], strides=[2])
    graph.on_rows(graph.op("Sigmoid", y))


def test_three_dimensional(net) -> None:
    graph = net((1, 3, 4, 6, 6), axes=(2, 3, 4))
    y = graph.op("Conv", "x", graph.weight(5, 3, 3, 3, 3), pads=[1] * 6)
    graph.on_rows(graph.op("Conv", graph.op("Sigmoid", y), graph.weight(5, 5, 1, 2, 2), strides=[1, 2, 2]))


def test_pointwise_on_flattened_positions(net) -> None:
    graph = net()
    flat = graph.op("Reshape", "x", graph.ints(1, 4, 64))
    y = graph.op("Sigmoid", graph.op("Conv", flat, graph.weight(4, 4, 1), graph.weight(4)))
    y = graph.op("Add", graph.op("Reshape", y, graph.ints(1, 4, 8, 8)), "x")
    bundle = graph.on_rows(y)
    assert [grid.dims for grid in bundle.manifest.grids] == [(8, 8)]


def test_window_over_flattened_positions_stays_dense(net) -> None:
    graph = net()
    flat = graph.op("Reshape", graph.op("Sigmoid", "x"), graph.ints(1, 4, 64))
    y = graph.op("Conv", flat, graph.weight(4, 4, 3), pads=[1, 1])
    bundle = graph.export(graph.op("Reshape", graph.op("Sigmoid", y), graph.ints(1, 4, 8, 8)))
    reasons = {row.op: row.reason for row in bundle.manifest.plan if row.plan == "densified"}
    assert "flattened" in reasons["Conv"]


def test_kernel_that_depends_on_the_condition(net) -> None:
    graph = net()
    kernel = graph.op("Mul", graph.weight(4, 4, 3, 3), graph.input("strength", [1]))
    graph.on_rows(graph.op("Sigmoid", graph.op("Conv", "x", kernel, pads=[1] * 4)))
