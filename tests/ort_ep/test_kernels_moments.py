"""GroupMoments and MomentAffine against double precision and their function bodies."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.ort_ep.single_node import make_model, open_session, run_all_ours, run_all_reference


def value(shape: tuple[int, ...], offset: float = 0.5) -> np.ndarray:
    return (np.random.default_rng(list(shape)).standard_normal(shape) + offset).astype(np.float32)


def moments_of(array: np.ndarray, groups: int) -> np.ndarray:
    grouped = array.astype(np.float64).reshape(array.shape[0], groups, -1)
    return np.stack([grouped.mean(axis=2), grouped.var(axis=2)])


def measured(array: np.ndarray, groups: int, run: int, threads: int = 1) -> Any:
    feeds = {"value": array, "runs": np.array([array.shape[0], groups, -1, run], np.int64)}
    model = make_model("GroupMoments", feeds, {"runs": feeds["runs"]})
    (got,) = run_all_ours(model, feeds, threads)
    (body,) = run_all_reference(model, feeds)
    np.testing.assert_allclose(got, body, rtol=2e-6, atol=1e-6)
    return got


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    ("shape", "groups", "run"),
    [((1, 4, 3, 5), 2, 15), ((2, 6, 40, 40), 3, 400), ((1, 96, 64, 64), 32, 512), ((1, 1, 1, 1), 1, 1)],
)
def test_moments_are_those_of_double_precision(shape: tuple[int, ...], groups: int, run: int, threads: int) -> None:
    array = value(shape)
    np.testing.assert_allclose(measured(array, groups, run, threads), moments_of(array, groups), rtol=1e-6, atol=1e-7)


@settings(max_examples=25)
@given(batch=st.integers(1, 3), groups=st.integers(1, 5), depth=st.integers(1, 4), size=st.integers(1, 700))
def test_moments_of_any_size_are_those_of_double_precision(batch: int, groups: int, depth: int, size: int) -> None:
    array = value((batch, groups * depth, size), offset=3.0)
    got = measured(array, groups, 1)
    np.testing.assert_allclose(got, moments_of(array, groups), rtol=2e-6, atol=1e-6)


def test_a_mean_far_from_zero_costs_the_variance_no_digits() -> None:
    array = value((1, 2, 100, 100), offset=1000.0)
    np.testing.assert_allclose(measured(array, 1, 500), moments_of(array, 1), rtol=1e-5)


def test_groups_that_do_not_divide_the_value_are_an_error() -> None:
    feeds = {"value": value((1, 4, 3)), "runs": np.array([1, 5, -1, 1], np.int64)}
    session = open_session(make_model("GroupMoments", feeds))
    with pytest.raises(Exception, match=r"expected runs \[B, G, -1, L\] that split the 12 numbers"):
        session.run(None, feeds)


def affine_feeds(batch: int, groups: int, depth: int) -> dict[str, np.ndarray]:
    row = [groups * depth] if batch == 1 else [batch, groups * depth]
    return {
        "moments": np.abs(value((2, batch, groups))),
        "grouping": np.array([batch, groups, depth], np.int64),
        "epsilon": np.array(1e-5, np.float32),
        "row": np.array(row, np.int64),
    }


@pytest.mark.parametrize(("batch", "groups", "depth"), [(1, 4, 3), (2, 3, 1), (1, 1, 8), (3, 32, 2)])
def test_channels_are_scaled_and_shifted_by_their_groups_moments(batch: int, groups: int, depth: int) -> None:
    feeds = affine_feeds(batch, groups, depth)
    model = make_model("MomentAffine", feeds, {name: feeds[name] for name in ("grouping", "epsilon", "row")})
    scale, shift = run_all_ours(model, feeds)
    mean, variance = feeds["moments"].astype(np.float64)
    factor = 1 / np.sqrt(variance + 1e-5)
    for got, wanted in ((scale, factor), (shift, -mean * factor)):
        np.testing.assert_allclose(got, np.repeat(wanted, depth, axis=1).reshape(feeds["row"]), rtol=1e-6)
    for got, body in zip((scale, shift), run_all_reference(model, feeds), strict=True):
        np.testing.assert_allclose(got, body, rtol=1e-6)


def test_a_row_of_other_channels_is_an_error() -> None:
    feeds = affine_feeds(1, 4, 3)
    feeds["row"] = np.array([16], np.int64)
    session = open_session(make_model("MomentAffine", feeds))
    with pytest.raises(Exception, match=r"MomentAffine: expected a grouping"):
        session.run(None, feeds)
