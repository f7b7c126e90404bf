"""Resizing in every mode that exporters emit is computed on rows."""

from __future__ import annotations

import numpy as np
import pytest

COORDINATES = ["half_pixel", "pytorch_half_pixel", "half_pixel_symmetric", "asymmetric", "align_corners"]
ROUNDINGS = ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"]
SCALES = {"up": (2.0, 2.0), "down": (0.5, 0.5), "odd": (1.5, 0.75)}


def scaled(graph, scales: tuple[float, float]) -> tuple[str, str]:
    return "", graph.const(np.array([1, 1, *scales], dtype=np.float32))


@pytest.mark.parametrize("scales", SCALES)
@pytest.mark.parametrize("coordinates", COORDINATES)
def test_nearest(net, coordinates: str, scales: str) -> None:
    graph = net()
    common = {"mode": "nearest", "coordinate_transformation_mode": coordinates}
    parts = [
        graph.op("Resize", "x", *scaled(graph, SCALES[scales]), nearest_mode=rounding, **common)
        for rounding in ROUNDINGS
    ]
    graph.on_rows(graph.op("Concat", *parts, axis=1))


@pytest.mark.parametrize("scales", SCALES)
@pytest.mark.parametrize("coordinates", COORDINATES)
def test_linear(net, coordinates: str, scales: str) -> None:
    graph = net((2, 4, 8, 8))
    y = graph.op(
        "Resize", "x", *scaled(graph, SCALES[scales]), mode="linear", coordinate_transformation_mode=coordinates
    )
    graph.on_rows(graph.op("Sigmoid", y))


@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_sizes_instead_of_scales(net, mode: str) -> None:
    graph = net()
    y = graph.op("Resize", "x", "", "", graph.ints(1, 4, 16, 12), mode=mode)
    graph.on_rows(graph.op("Resize", graph.op("Sigmoid", y), "", "", graph.ints(5, 20), mode=mode, axes=[2, 3]))


def test_scales_of_some_axes(net) -> None:
    graph = net()
    scales = graph.const(np.array([2.0], dtype=np.float32))
    y = graph.op("Resize", "x", "", scales, mode="linear", axes=[3])
    graph.on_rows(graph.op("Resize", y, "", scales, mode="nearest", axes=[-2]))


@pytest.mark.parametrize("policy", ["not_larger", "not_smaller"])
def test_kept_aspect_ratio_is_correct(net, policy: str) -> None:
    graph = net((1, 4, 8, 6))
    sizes = graph.ints(13, 13)
    y = graph.op("Sigmoid", "x")
    y = graph.op("Resize", y, "", "", sizes, mode="linear", axes=[2, 3], keep_aspect_ratio_policy=policy)
    graph.export(graph.op("Sigmoid", y))


def test_one_and_three_dimensional(net) -> None:
    graph = net((1, 4, 12), axes=(2,))
    scales = graph.const(np.array([1, 1, 2], dtype=np.float32))
    graph.on_rows(graph.op("Resize", graph.op("Resize", "x", "", scales, mode="nearest"), "", scales, mode="linear"))
    graph = net((1, 2, 3, 4, 4), axes=(2, 3, 4))
    scales = graph.const(np.array([1, 1, 1, 2, 2], dtype=np.float32))
    graph.on_rows(graph.op("Resize", "x", "", scales, mode="nearest", nearest_mode="floor"))


@pytest.mark.parametrize("scales", SCALES)
@pytest.mark.parametrize("coordinates", ["half_pixel", "asymmetric", "align_corners"])
def test_cubic(net, coordinates: str, scales: str) -> None:
    graph = net((2, 4, 8, 8))
    common = {"mode": "cubic", "coordinate_transformation_mode": coordinates}
    parts = [
        graph.op(
            "Resize", "x", *scaled(graph, SCALES[scales]), exclude_outside=outside, cubic_coeff_a=coefficient, **common
        )
        for outside, coefficient in ((0, -0.75), (1, -0.5))
    ]
    graph.on_rows(graph.op("Concat", *parts, axis=1))


@pytest.mark.parametrize("mode", ["linear", "cubic"])
@pytest.mark.parametrize("scales", SCALES)
def test_antialias(net, scales: str, mode: str) -> None:
    graph = net()
    parts = [
        graph.op("Resize", "x", *scaled(graph, SCALES[scales]), mode=mode, antialias=1, exclude_outside=outside)
        for outside in (0, 1)
    ]
    graph.on_rows(graph.op("Concat", *parts, axis=1))


@pytest.mark.parametrize("opset", [19, 22])
def test_cropping_while_resizing_is_dense_and_correct(net, opset: int) -> None:
    graph = net(opset=opset)
    roi = graph.const(np.array([0, 0, 0.2, 0.2, 1, 1, 0.8, 0.8], dtype=np.float32))
    scales = graph.const(np.array([1, 1, 2, 2], dtype=np.float32))
    mode = {"mode": "linear", "coordinate_transformation_mode": "tf_crop_and_resize"}
    bundle = graph.export(graph.op("Sigmoid", graph.op("Resize", graph.op("Sigmoid", "x"), roi, scales, **mode)))
    assert "cropping while resizing is not supported" in {row.reason for row in bundle.manifest.plan}


@pytest.mark.parametrize("batch", [1, 2])
def test_repeating_by_expand(net, batch: int) -> None:
    """What ``repeat_interleave`` or ``x[:, :, :, None, :, None].expand(...)`` export to."""
    graph = net((batch, 4, 8, 8))
    y = graph.op("Reshape", "x", graph.ints(batch, 4, 8, 1, 8, 1))
    y = graph.op("Expand", y, graph.ints(batch, 4, 8, 2, 8, 2))
    y = graph.op("Reshape", y, graph.ints(batch, 4, 16, 16))
    graph.on_rows(graph.op("Conv", y, graph.weight(4, 4, 3, 3), pads=[1] * 4))
