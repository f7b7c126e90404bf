"""Depth to space and back, as operators and as the reshapes that exporters write, is computed on rows."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

BATCHES = pytest.mark.parametrize("batch", [1, 2])


@BATCHES
@pytest.mark.parametrize("mode", ["DCR", "CRD"])
def test_depth_to_space(net, mode: str, batch: int) -> None:
    graph = net((batch, 12, 6, 4))
    y = graph.op("DepthToSpace", graph.op("Sigmoid", "x"), blocksize=2, mode=mode)
    bundle = graph.on_rows(graph.op("Conv", y, graph.weight(3, 3, 3, 3), pads=[1] * 4))
    assert {grid.dims for grid in bundle.manifest.grids} == {(6, 4), (12, 8)}


@BATCHES
def test_space_to_depth(net, batch: int) -> None:
    graph = net((batch, 3, 6, 9))
    y = graph.op("SpaceToDepth", graph.op("Sigmoid", "x"), blocksize=3)
    graph.on_rows(graph.op("Conv", y, graph.weight(5, 27, 1, 1)))


@BATCHES
@pytest.mark.parametrize("mode", ["DCR", "CRD"])
def test_chains_of_an_exporter(net, mode: str, batch: int) -> None:
    """Shuffles of channels-first values, forth and back."""
    graph = net((batch, 8, 4, 6))
    apart = (batch, 2, 2, 2, 4, 6)
    perm = [0, 3, 4, 1, 5, 2] if mode == "DCR" else [0, 1, 4, 2, 5, 3]
    y = graph.op("Transpose", graph.op("Reshape", "x", graph.ints(*apart)), perm=perm)
    y = graph.op("Reshape", y, graph.ints(batch, 2, 8, 12))
    y = graph.op("Conv", y, graph.weight(2, 2, 3, 3), pads=[1] * 4)
    y = graph.op("Reshape", y, graph.ints(batch, 2, 4, 2, 6, 2))
    back = [0, 3, 5, 1, 2, 4] if mode == "DCR" else [0, 1, 3, 5, 2, 4]
    y = graph.op("Reshape", graph.op("Transpose", y, perm=back), graph.ints(batch, 8, 4, 6))
    graph.on_rows(graph.op("Add", graph.op("Conv", y, graph.weight(8, 8, 1, 1)), "x"))


@BATCHES
def test_chain_with_channels_last(net, batch: int) -> None:
    """Swin's patch expansion."""
    graph = net((batch, 4, 6, 8), axes=(1, 2))
    y = graph.op("Reshape", graph.op("MatMul", "x", graph.weight(8, 16)), graph.ints(batch, 4, 6, 2, 2, 4))
    y = graph.op("Reshape", graph.op("Transpose", y, perm=[0, 1, 3, 2, 4, 5]), graph.ints(batch, 8, 12, 4))
    graph.on_rows(graph.op("MatMul", y, graph.weight(4, 4)))


@settings(max_examples=12, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    size=st.integers(2, 3),
    height=st.integers(1, 3),
    width=st.integers(1, 4),
    channels=st.integers(1, 3),
    mode=st.sampled_from(["DCR", "CRD"]),
)
def test_any_size(net, size: int, height: int, width: int, channels: int, mode: str) -> None:
    graph = net((1, channels, size * height, size * width))
    y = graph.op("Sigmoid", graph.op("SpaceToDepth", "x", blocksize=size))
    graph.on_rows(graph.op("Sigmoid", graph.op("DepthToSpace", y, blocksize=size, mode=mode)))
