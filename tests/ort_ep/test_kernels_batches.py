"""Operators of rows of several samples, which share their rows, and depthwise convolutions, against function bodies."""

from __future__ import annotations

import numpy as np
import pytest

from retouch.export.ops import Activation, Tail
from tests.ort_ep.single_node import (
    make_model,
    neighbourhood,
    run_all_ours,
    run_all_reference,
)

TOLERANCE = {"rtol": 2e-5, "atol": 2e-5}
FULL = Tail(gated=True, added=True, kept=True, affine=True, activation=Activation.SILU)
TAILS = (Tail(), Tail(affine=True), Tail(added=True), FULL)
VARYING = ("rows", "cached", "halo", "neighbours", "residual", "index")


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(np.float32)


def tail_operands(tail: Tail, shape: tuple[int, ...], own: tuple[int, ...]) -> dict[str, np.ndarray]:
    """The operands of a tail of rows of a shape; those with a number per column have the shape ``own``."""
    every = {
        "gate": (tail.gated, own),
        "residual": (tail.added, shape),
        "factor": (tail.affine, shape[-1:]),
        "shift": (tail.affine, own),
    }
    return {
        name: normal(*size, seed=seed) for seed, (name, (there, size)) in enumerate(every.items(), start=5) if there
    }


def compare(op: str, feeds: dict[str, np.ndarray | None], *, threads: int = 1, **attributes: int) -> None:
    constants = {name: value for name, value in feeds.items() if name not in VARYING and value is not None}
    model = make_model(op, feeds, constants, attributes)
    ours = run_all_ours(model, feeds, threads)
    if not feeds["rows"].size:
        assert all(not result.size for result in ours)
        return
    expected = run_all_reference(model, feeds)
    assert len(ours) == len(expected) == len(model.functions[0].output)
    for got, wanted in zip(ours, expected, strict=True):
        np.testing.assert_allclose(got, wanted, **TOLERANCE)


def columns_of(samples: int, columns: int, *, own: bool) -> tuple[int, ...]:
    return (samples, columns) if own else (columns,)


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("tail", TAILS, ids=lambda tail: tail.name)
@pytest.mark.parametrize(("rows", "samples", "threads"), [(0, 2, 1), (1, 3, 1), (50, 2, 1), (50, 1, 2)])
def test_convolutions(rows: int, samples: int, threads: int, tail: Tail, own: bool) -> None:
    per_column = columns_of(samples, 70, own=own)
    feeds = {
        **neighbourhood(np.random.default_rng(rows), rows, 40, 9, (samples, 12)),
        "weight": normal(70, 9 * 12) / np.float32(10),
        "bias": normal(*per_column),
        "form": np.array([-1, samples, 70]),
        **tail_operands(tail, (rows, samples, 70), per_column),
    }
    compare("BatchEditConv" + tail.name, feeds, threads=threads)


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("tail", TAILS, ids=lambda tail: tail.name)
@pytest.mark.parametrize(("rows", "samples", "transposed"), [(0, 2, 0), (7, 3, 0), (40, 2, 1)])
def test_products(rows: int, samples: int, transposed: int, tail: Tail, own: bool) -> None:
    per_column = columns_of(samples, 33, own=own)
    feeds = {
        "rows": normal(rows, samples, 20),
        "weight": normal(33, 20) if transposed else normal(20, 33),
        "bias": normal(*per_column),
        "form": np.array([-1, samples, 33]),
        **tail_operands(tail, (rows, samples, 33), per_column),
    }
    compare("BatchRowLinear" + tail.name, feeds, transB=transposed)


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize(
    "tail", [Tail(affine=True), Tail(added=True, activation=Activation.GELU)], ids=lambda t: t.name
)
def test_rows(tail: Tail, own: bool) -> None:
    feeds = {"rows": normal(9, 3, 17), **tail_operands(tail, (9, 3, 17), columns_of(3, 17, own=own))}
    compare("BatchRows" + tail.name, feeds)


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("tail", [Tail(), Tail(affine=True, activation=Activation.SILU)], ids=lambda t: t.name)
def test_group_norms(tail: Tail, own: bool) -> None:
    samples, groups, depth = 3, 4, 5
    moments = np.abs(normal(2, samples, groups)) + 1
    feeds = {
        "rows": normal(6, samples, groups * depth),
        "cached": normal(20, samples, groups * depth, seed=1),
        "index": np.array([3, 0, 19, 7, 8, 1]),
        "moments": moments,
        "grouping": np.array([samples, groups, depth]),
        "share": np.array(1 / (20 * depth), np.float32),
        "epsilon": np.array(1e-5, np.float32),
        **tail_operands(tail, (6, samples, groups * depth), columns_of(samples, groups * depth, own=own)),
    }
    compare("BatchEditGroupNorm" + tail.name, feeds)


@pytest.mark.parametrize("tail", TAILS, ids=lambda tail: tail.name)
@pytest.mark.parametrize(("rows", "channels", "taps", "threads"), [(0, 5, 9, 1), (7, 33, 9, 1), (300, 64, 25, 2)])
def test_depthwise_convolutions(rows: int, channels: int, taps: int, threads: int, tail: Tail) -> None:
    feeds = {
        **neighbourhood(np.random.default_rng(rows), rows, 40, taps, (channels,)),
        "weight": normal(taps, channels),
        "bias": normal(channels),
        **tail_operands(tail, (rows, channels), (channels,)),
    }
    compare("DepthwiseEditConv" + tail.name, feeds, threads=threads)


@pytest.mark.parametrize("own", [False, True])
def test_depthwise_convolutions_of_several_samples(own: bool) -> None:
    per_column = columns_of(2, 19, own=own)
    feeds = {
        **neighbourhood(np.random.default_rng(1), 23, 40, 9, (2, 19)),
        "weight": normal(9, 1, 19),
        "bias": normal(*per_column),
        **tail_operands(FULL, (23, 2, 19), per_column),
    }
    compare("BatchDepthwiseEditConv" + FULL.name, feeds)
