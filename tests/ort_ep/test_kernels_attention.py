"""EditAttention against double precision and its function body."""

from __future__ import annotations

import numpy as np
import pytest

from tests.ort_ep.single_node import claimed, make_model, open_session, run_ours, run_reference

TOLERANCE = {"rtol": 2e-5, "atol": 2e-6}


def attention(
    queries: int, keys: int, heads: int, depth: int, value_depth: int | None = None, edited: int = 3
) -> dict[str, np.ndarray]:
    rng = np.random.default_rng([queries, keys, heads, depth])
    wide = value_depth or depth
    edited = min(edited, keys)

    def normal(*shape: int) -> np.ndarray:
        return rng.standard_normal(shape).astype(np.float32)

    return {
        "query": normal(queries, heads * depth),
        "key": normal(edited, heads * depth),
        "value": normal(edited, heads * wide),
        "cached_key": normal(keys, heads, depth),
        "cached_value": normal(keys, heads, wide),
        "index": rng.permutation(keys)[:edited, None].astype(np.int64),
        "scale": np.array(depth**-0.5, np.float32),
    }


def expected(feeds: dict[str, np.ndarray]) -> np.ndarray:
    keys, values = feeds["cached_key"].astype(np.float64), feeds["cached_value"].astype(np.float64)
    heads, depth, wide = *keys.shape[1:], values.shape[-1]
    places = feeds["index"][:, 0]
    keys[places] = feeds["key"].reshape(-1, heads, depth)
    values[places] = feeds["value"].reshape(-1, heads, wide)
    queries = feeds["query"].astype(np.float64).reshape(-1, heads, depth)
    scores = float(feeds["scale"]) * np.einsum("mhd,nhd->hmn", queries, keys)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    mixed = np.einsum("hmn,nhd->mhd", weights / weights.sum(axis=-1, keepdims=True), values)
    return mixed.reshape(-1, heads * wide)


@pytest.mark.parametrize("queries", [0, 1, 3, 5, 16, 17, 40, 300])
@pytest.mark.parametrize(("keys", "heads", "depth"), [(1, 1, 1), (3, 2, 8), (64, 3, 64), (131, 2, 40), (300, 2, 80)])
def test_attention_of_active_queries(queries: int, keys: int, heads: int, depth: int) -> None:
    feeds = attention(queries, keys, heads, depth)
    np.testing.assert_allclose(run_ours(make_model("EditAttention", feeds), feeds), expected(feeds), **TOLERANCE)


@pytest.mark.parametrize("threads", [1, 2])
def test_attention_is_what_its_body_computes(threads: int) -> None:
    feeds = attention(37, 150, 4, 20, 12, edited=37)
    model = make_model("EditAttention", feeds)
    np.testing.assert_allclose(run_ours(model, feeds, threads), run_reference(model, feeds), **TOLERANCE)
    np.testing.assert_array_equal(run_ours(model, feeds, threads), run_ours(model, feeds))


@pytest.mark.parametrize(
    ("queries", "heads", "depth"), [(1, 4, 64), (5, 6, 64), (17, 3, 20), (130, 5, 8), (300, 8, 64), (70, 1, 24)]
)
def test_heads_in_turn_give_the_same_bits(queries: int, heads: int, depth: int) -> None:
    feeds = attention(queries, 300, heads, depth)
    model = make_model("EditAttention", feeds)
    together = open_session(model, options={"threads": "1"}).run(None, feeds)[0]
    np.testing.assert_allclose(together, expected(feeds), **TOLERANCE)
    np.testing.assert_array_equal(together, run_ours(model, feeds))


def test_grouped_heads_in_turn_give_the_same_bits() -> None:
    feeds = attention(20, 200, 3, 16)
    feeds["query"] = np.concatenate([feeds["query"], -feeds["query"]], axis=1)
    model = make_model("EditAttention", feeds)
    got = open_session(model, options={"threads": "1"}).run(None, feeds)[0]
    np.testing.assert_array_equal(got, run_ours(model, feeds))
    for name in ("cached_key", "cached_value"):
        feeds[name] = np.repeat(feeds[name], 2, axis=1)
    for name in ("key", "value"):
        feeds[name] = np.repeat(feeds[name].reshape(-1, 3, 16), 2, axis=1).reshape(-1, 96)
    np.testing.assert_allclose(got, expected(feeds), **TOLERANCE)


def test_without_recomputed_rows_the_cached_ones_are_read() -> None:
    feeds = attention(5, 20, 2, 8, edited=0)
    np.testing.assert_allclose(run_ours(make_model("EditAttention", feeds), feeds), expected(feeds), **TOLERANCE)


def test_an_index_counts_from_the_end() -> None:
    feeds = attention(5, 20, 2, 8)
    got = run_ours(make_model("EditAttention", feeds), {**feeds, "index": feeds["index"] - 20})
    np.testing.assert_allclose(got, expected(feeds), **TOLERANCE)


def test_large_scores_do_not_overflow() -> None:
    feeds = attention(5, 90, 2, 8)
    feeds["query"] *= 1000
    np.testing.assert_allclose(run_ours(make_model("EditAttention", feeds), feeds), expected(feeds), **TOLERANCE)


def test_a_score_that_is_no_number_spoils_its_query_only() -> None:
    feeds = attention(5, 90, 2, 8)
    feeds["query"][3, 8 + 2] = np.nan
    got = run_ours(make_model("EditAttention", feeds), feeds)
    heads = got.reshape(10, -1)
    assert np.isnan(heads[7]).all()
    assert np.isfinite(np.delete(heads, 7, axis=0)).all()


@pytest.mark.parametrize("value", [20, -21])
def test_an_index_out_of_range_is_an_error(value: int) -> None:
    feeds = attention(5, 20, 2, 8)
    feeds["index"][1] = value
    with pytest.raises(
        Exception, match=f"EditAttention: expected every index to be from -20 to before 20, got {value}"
    ):
        open_session(make_model("EditAttention", feeds)).run(None, feeds)


def test_operands_that_do_not_fit_are_an_error() -> None:
    feeds = attention(5, 20, 2, 8)
    session = open_session(make_model("EditAttention", feeds, open_dims=True))
    with pytest.raises(Exception, match=r"expected value \[3, 16\], got shape \[2, 16\]"):
        session.run(None, {**feeds, "value": feeds["value"][:2]})


def test_other_element_types_are_left_to_the_runtime() -> None:
    feeds = {name: v.astype(np.float16) if name != "index" else v for name, v in attention(5, 20, 2, 8).items()}
    session = open_session(make_model("EditAttention", feeds))
    assert claimed(session) == []
    np.testing.assert_allclose(session.run(None, feeds)[0], expected(feeds), rtol=5e-3, atol=5e-3)


def stacked(queries: int, keys: int, fresh: int) -> dict[str, np.ndarray]:
    """Operands of StackedAttention; every query sees about half of the keys, and at least one."""
    feeds = attention(queries, keys, 3, 20, 12)
    rng = np.random.default_rng(queries)
    seen = rng.integers(0, 2, (queries, keys + fresh)).astype(bool)
    seen[:, 0] = True
    del feeds["index"]
    feeds["key"] = rng.standard_normal((fresh, 60)).astype(np.float32)
    feeds["value"] = rng.standard_normal((fresh, 36)).astype(np.float32)
    bias = np.where(seen, 0, -np.inf).astype(np.float32)
    order = ("query", "key", "value", "cached_key", "cached_value", "bias", "scale")
    return {name: {**feeds, "bias": bias}[name] for name in order}


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(("queries", "keys", "fresh"), [(1, 5, 2), (20, 70, 20), (75, 130, 75), (7, 64, 0)])
def test_queries_of_several_edits_see_what_they_may(queries: int, keys: int, fresh: int, threads: int) -> None:
    feeds = stacked(queries, keys, fresh)
    model = make_model("StackedAttention", feeds)
    np.testing.assert_allclose(run_ours(model, feeds, threads), run_reference(model, feeds), **TOLERANCE)
    alone = open_session(model, options={"threads": "1"}).run(None, feeds)[0]
    np.testing.assert_array_equal(alone, run_ours(model, feeds, threads))


def test_a_query_that_sees_nothing_is_no_number() -> None:
    feeds = stacked(5, 70, 5)
    feeds["bias"][2] = -np.inf
    got = run_ours(make_model("StackedAttention", feeds), feeds)
    assert np.isnan(got[2]).all()
    assert np.isfinite(np.delete(got, 2, axis=0)).all()


def test_a_bias_of_other_keys_is_an_error() -> None:
    feeds = stacked(5, 70, 5)
    session = open_session(make_model("StackedAttention", feeds, open_dims=True))
    with pytest.raises(Exception, match=r"StackedAttention: expected key \[4, 60\], got shape \[5, 60\]"):
        session.run(None, {**feeds, "bias": feeds["bias"][:, 1:]})
