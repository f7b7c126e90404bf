from __future__ import annotations

import numpy as np
import onnx
import pytest

from tests.ort_ep.single_node import make_model, neighbourhood, open_session, run_ours, run_reference


@pytest.mark.parametrize("dtype", ["float32", "float16", "float64"])
@pytest.mark.parametrize(("active", "cached", "taps", "row"), [(1, 8, 9, (4,)), (7, 30, 4, (2, 3)), (0, 5, 9, (3,))])
def test_gathered_rows_are_those_of_the_table(
    dtype: str, active: int, cached: int, taps: int, row: tuple[int, ...]
) -> None:
    feeds = neighbourhood(np.random.default_rng(active), active, cached, taps, row, dtype)
    model = make_model("GatherRows", feeds)
    got = run_ours(model, feeds)
    table = np.concatenate([feeds["rows"], feeds["cached"][feeds["halo"]], feeds["pad"]])
    assert got.dtype == dtype
    np.testing.assert_array_equal(got, table[feeds["neighbours"]])
    np.testing.assert_array_equal(got, run_reference(model, feeds))


@pytest.mark.parametrize("threads", [1, 2])
def test_large_gathers_are_complete(threads: int) -> None:
    feeds = neighbourhood(np.random.default_rng(0), 700, 2000, 9, (64,))
    model = make_model("GatherRows", feeds)
    np.testing.assert_array_equal(run_ours(model, feeds, threads), run_reference(model, feeds))


@pytest.mark.parametrize(("operand", "value"), [("halo", 8), ("halo", -1), ("neighbours", 11), ("neighbours", -1)])
def test_an_index_out_of_range_is_an_error(operand: str, value: int) -> None:
    feeds = neighbourhood(np.random.default_rng(0), 6, 8, 9, (4,))
    feeds[operand].flat[1] = value
    session = open_session(make_model("GatherRows", feeds))
    with pytest.raises(Exception, match=f"every index of {operand} to be from 0 to before .*, got {value}"):
        session.run(None, feeds)


def test_rows_of_another_width_are_an_error() -> None:
    feeds = neighbourhood(np.random.default_rng(0), 6, 8, 9, (4,))
    session = open_session(make_model("GatherRows", feeds, open_dims=True))
    feeds["cached"] = np.zeros((8, 5), np.float32)
    with pytest.raises(Exception, match=r"expected cached \[N, ...\] with rows \[4\], got shape \[8, 5\]"):
        session.run(None, feeds)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bool"])
@pytest.mark.parametrize(
    ("shape", "axes", "count"), [((9, 4), 1, 3), ((1, 9, 4), 2, 9), ((5, 3), 2, 4), ((9, 4), 1, 0)]
)
def test_merged_rows_replace_the_cached_ones(dtype: str, shape: tuple[int, ...], axes: int, count: int) -> None:
    rng = np.random.default_rng(count)
    chosen = rng.permutation(int(np.prod(shape[:axes])))[:count]
    feeds = {
        "cached": rng.integers(0, 2, shape).astype(dtype),
        "index": np.stack(np.unravel_index(chosen, shape[:axes]), axis=1).astype(np.int64),
        "rows": rng.integers(0, 2, (count, *shape[axes:])).astype(dtype),
    }
    model = make_model("MaskedMerge", feeds)
    expected = feeds["cached"].copy()
    expected[tuple(feeds["index"].T)] = feeds["rows"]
    before = feeds["cached"].copy()
    np.testing.assert_array_equal(run_ours(model, feeds), expected)
    np.testing.assert_array_equal(run_reference(model, feeds), expected)
    np.testing.assert_array_equal(feeds["cached"], before)


@pytest.mark.parametrize("value", [9, -10])
def test_merging_outside_the_cached_tensor_is_an_error(value: int) -> None:
    feeds = {
        "cached": np.zeros((9, 4), np.float32),
        "index": np.array([[0], [value]]),
        "rows": np.ones((2, 4), np.float32),
    }
    session = open_session(make_model("MaskedMerge", feeds))
    with pytest.raises(Exception, match=f"axis 0 to be from -9 to before 9, got {value}"):
        session.run(None, feeds)


def test_a_merge_of_an_inner_value() -> None:
    rng = np.random.default_rng(0)
    feeds = {
        "cached": rng.standard_normal((64, 8)).astype(np.float32),
        "index": np.array([[3], [60]]),
        "rows": rng.standard_normal((2, 8)).astype(np.float32),
    }
    model = make_model("MaskedMerge", feeds)
    graph = model.graph
    graph.node[0].input[0], graph.node[0].output[0] = "negated", "merged"
    before = onnx.helper.make_node("Neg", ["cached"], ["negated"])
    after = onnx.helper.make_node("Neg", ["merged"], ["out"])
    nodes = [before, *graph.node, after]
    del graph.node[:]
    graph.node.extend(nodes)
    expected = feeds["cached"].copy()
    expected[[3, 60]] = -feeds["rows"]
    (got,) = open_session(model).run(None, feeds)
    np.testing.assert_array_equal(got, expected)
