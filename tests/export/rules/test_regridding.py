"""Reshapes that cut rows into finer ones or group them into coarser ones are computed on rows."""

from __future__ import annotations

import pytest

BATCHES = pytest.mark.parametrize("batch", [1, 2])


@BATCHES
def test_patches_and_back(net, batch: int) -> None:
    """A patch embedding and its inverse, as reshapes and transposes."""
    graph = net((batch, 4, 8, 12))
    y = graph.op("Reshape", "x", graph.ints(batch, 4, 4, 2, 4, 3))
    y = graph.op("Reshape", graph.op("Transpose", y, perm=[0, 2, 4, 3, 5, 1]), graph.ints(batch, 16, 24))
    y = graph.op("Sigmoid", graph.op("MatMul", y, graph.weight(24, 24)))
    y = graph.op("Reshape", y, graph.ints(batch, 4, 4, 2, 3, 4))
    y = graph.op("Einsum", y, equation="nhwpqc->nchpwq")
    bundle = graph.on_rows(graph.op("Reshape", y, graph.ints(batch, 4, 8, 12)))
    assert {grid.dims for grid in bundle.manifest.grids} == {(8, 12), (4, 4)}


@BATCHES
def test_attention_within_windows(net, batch: int) -> None:
    """Windows of 4 x 4, every window one row: Swin's partition without its shift."""
    graph = net((batch, 4, 8, 8))
    y = graph.op("Reshape", "x", graph.ints(batch, 4, 2, 4, 2, 4))
    y = graph.op("Reshape", graph.op("Transpose", y, perm=[0, 2, 4, 3, 5, 1]), graph.ints(batch, 2, 2, 16, 4))
    scores = graph.op("MatMul", y, graph.op("Transpose", y, perm=[0, 1, 2, 4, 3]))
    y = graph.op("MatMul", graph.op("Softmax", scores, axis=-1), y)
    y = graph.op("Transpose", graph.op("Reshape", y, graph.ints(batch, 2, 2, 4, 4, 4)), perm=[0, 5, 1, 3, 2, 4])
    graph.on_rows(graph.op("Reshape", y, graph.ints(batch, 4, 8, 8)))


def test_along_one_axis(net) -> None:
    graph = net()
    y = graph.op("Sigmoid", graph.op("Reshape", "x", graph.ints(1, 4, 8, 4, 2)))
    graph.on_rows(graph.op("Reshape", graph.op("Softmax", y, axis=4), graph.ints(1, 4, 8, 8)))


def test_chunks_of_a_sequence(net) -> None:
    graph = net((1, 24, 6), axes=(1,))
    y = graph.op("ReduceMean", graph.op("Reshape", "x", graph.ints(1, 8, 3, 6)), graph.ints(2))
    y = graph.op("Expand", y, graph.ints(1, 8, 3, 6))
    graph.on_rows(graph.op("Add", graph.op("Reshape", y, graph.ints(1, 24, 6)), "x"))


def test_rows_without_channels(net) -> None:
    graph = net((1, 1, 8, 8))
    y = graph.op("Sigmoid", graph.op("Reshape", "x", graph.ints(1, 1, 4, 2, 4, 2)))
    graph.on_rows(graph.op("Reshape", y, graph.ints(1, 1, 8, 8)))


def test_interleaving(net) -> None:
    """Finer rows in front of their coarser row: the same rows in another order."""
    graph = net()
    y = graph.op("Sigmoid", graph.op("Reshape", "x", graph.ints(1, 4, 8, 2, 4)))
    y = graph.op("Reshape", graph.op("Transpose", y, perm=[0, 1, 2, 4, 3]), graph.ints(1, 4, 8, 8))
    bundle = graph.on_rows(graph.op("Sigmoid", y))
    assert [grid.view is not None for grid in bundle.manifest.grids] == [False, True, True]
