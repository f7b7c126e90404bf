from __future__ import annotations

import numpy as np
import pytest

from tests.export.fusions.graphs import fused, graph_of, normal

FEEDS = {
    "q": normal(3, 2, 4),
    "k": normal(3, 2, 4, seed=1),
    "v": normal(3, 2, 5, seed=2),
    "ck": normal(9, 2, 4, seed=3),
    "cv": normal(9, 2, 5, seed=4),
    "at": np.array([[1], [8], [4]]),
}
INPUTS = "float[M,2,4] q, float[M,2,4] k, float[M,2,5] v, float[9,2,4] ck, float[9,2,5] cv, int64[M,1] at"
BODY = """
    mk = ai.retouch.MaskedMerge(ck, at, k) kt = Transpose<perm = [1, 2, 0]>(mk)
    mv = ai.retouch.MaskedMerge(cv, at, v) vt = Transpose<perm = [1, 0, 2]>(mv)
    qt = Transpose<perm = [1, 0, 2]>(q) sc = MatMul(qt, kt) sm = Mul(sc, scale)
    p = Softmax<axis = 2>(sm) o = MatMul(p, vt) y = Transpose<perm = [1, 0, 2]>(o)
"""


def operators(body: str, outputs: str = "float[M,2,5] y") -> dict[str, int]:
    model = graph_of(f"g ({INPUTS}) => ({outputs}) {{ {body} }}", {"scale": np.array(0.5, np.float32)})
    return dict(fused(model, FEEDS))


def test_an_attention_over_merged_rows_is_one_operator() -> None:
    assert operators(BODY) == {"EditAttention": 1, "Reshape": 4}


def test_scores_that_are_not_scaled_have_the_scale_one() -> None:
    """In half precision queries and keys are scaled before their product."""
    assert operators(BODY.replace("sm = Mul(sc, scale)", "").replace("(sm)", "(sc)")) == {
        "EditAttention": 1,
        "Reshape": 4,
    }


def test_attention_in_half_precision_is_one_operator_too() -> None:
    body = BODY.replace("sm = Mul(sc, scale)", "").replace("(sm)", "(sc)")
    model = graph_of(f"g ({INPUTS}) => (float[M,2,5] y) {{ {body} }}".replace("float", "float16"))
    half = {name: array if name == "at" else array.astype(np.float16) for name, array in FEEDS.items()}
    assert dict(fused(model, half)) == {"EditAttention": 1, "Reshape": 4}


ROWS = """
    q = Reshape(qr, by_head) k = Reshape(kr, by_head) v = Reshape(vr, by_wide_head)
    {body} rows = Reshape(y, flat) z = Neg(rows)
"""


@pytest.mark.parametrize("more", ["", ", float[M,2,4] k, float[M,2,5] y"])
def test_heads_of_rows_are_neither_split_nor_joined(more: str) -> None:
    inputs = "float[M,8] qr, float[M,8] kr, float[M,10] vr, " + INPUTS.partition("v, ")[2]
    shapes = {"by_head": np.array([-1, 2, 4]), "by_wide_head": np.array([-1, 2, 5]), "flat": np.array([-1, 10])}
    body = ROWS.format(body=BODY)
    model = graph_of(
        f"g ({inputs}) => (float[M,10] z{more}) {{ {body} }}", {"scale": np.array(0.5, np.float32)} | shapes
    )
    feeds = {f"{name}r": FEEDS[name].reshape(3, -1) for name in "qkv"} | {
        name: FEEDS[name] for name in ("ck", "cv", "at")
    }
    expected = {"EditAttention": 1, "Neg": 1} | ({"Reshape": 2} if more else {})
    assert dict(fused(model, feeds)) == expected


def test_merged_rows_that_are_wanted_stay_as_well() -> None:
    assert operators(BODY, "float[M,2,5] y, float[9,2,4] mk") == {"EditAttention": 1, "MaskedMerge": 1, "Reshape": 4}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("p = Softmax<axis = 2>(sm)", "n = Neg(sm) p = Softmax<axis = 2>(n)"),
        ("p = Softmax<axis = 2>(sm)", "p = Softmax<axis = 1>(sm)"),
        ("sm = Mul(sc, scale)", "sm = Mul(sc, sc)"),
        ("mv = ai.retouch.MaskedMerge(cv, at, v)", "mv = Neg(cv) z = Neg(v)"),
    ],
)
def test_other_chains_stay(old: str, new: str) -> None:
    assert "EditAttention" not in operators(BODY.replace(old, new))


STACKED = """
    mk = Concat<axis = 0>(ck, k) kt = Transpose<perm = [1, 2, 0]>(mk)
    mv = Concat<axis = 0>(cv, v) vt = Transpose<perm = [1, 0, 2]>(mv)
    qt = Transpose<perm = [1, 0, 2]>(q) sc = MatMul(qt, kt) sm = Mul(sc, scale)
    wide = Unsqueeze(bias, zero) seen = Add(sm, wide) top = ReduceMax<keepdims = 1>(seen, two)
    low = Sub(seen, top) held = Max(low, lowest)
    p = Softmax<axis = 2>(held) o = MatMul(p, vt) y = Transpose<perm = [1, 0, 2]>(o)
"""


def stacked(body: str, lowest: float = -80) -> dict[str, int]:
    numbers = {"scale": np.array(0.5, np.float32), "lowest": np.array(lowest, np.float32)}
    axes = {"zero": np.array([0]), "two": np.array([2]), "one": np.array([1])}
    inputs = INPUTS.replace("int64[M,1] at", "float[M,12] bias")
    model = graph_of(f"g ({inputs}) => (float[M,2,5] y) {{ {body} }}", numbers | axes)
    with np.errstate(divide="ignore"):
        bias = np.log(np.random.default_rng(0).integers(0, 2, (3, 12)).astype(np.float32))
    feeds = {name: value for name, value in FEEDS.items() if name != "at"} | {"bias": bias}
    return dict(fused(model, feeds))


def test_an_attention_of_several_edits_is_one_operator() -> None:
    assert stacked(STACKED) == {"StackedAttention": 1, "Reshape": 4}


@pytest.mark.parametrize(("axis", "lowest"), [("two", -30), ("one", -80)])
def test_attentions_that_hide_otherwise_stay(axis: str, lowest: float) -> None:
    assert "StackedAttention" not in stacked(STACKED.replace("(seen, two)", f"(seen, {axis})"), lowest)


BATCH = """
    mk = ai.retouch.MaskedMerge(ck, at, k) kt = Transpose<perm = [1, 2, 3, 0]>(mk)
    mv = ai.retouch.MaskedMerge(cv, at, v) vt = Transpose<perm = [1, 2, 0, 3]>(mv)
    qt = Transpose<perm = [1, 2, 0, 3]>(q) sc = MatMul(qt, kt) sm = Mul(sc, scale)
    p = Softmax<axis = 3>(sm) o = MatMul(p, vt) y = Transpose<perm = [2, 0, 1, 3]>(o)
"""


def test_heads_of_several_samples_are_so_many_more_heads() -> None:
    feeds = {
        name: value if name == "at" else np.stack([value, normal(*value.shape, seed=9)], 1)
        for name, value in FEEDS.items()
    }
    inputs = INPUTS.replace(",2,", ",2,2,")
    model = graph_of(f"g ({inputs}) => (float[M,2,2,5] y) {{ {BATCH} }}", {"scale": np.array(0.5, np.float32)})
    assert dict(fused(model, feeds)) == {"EditAttention": 1, "Reshape": 6}
