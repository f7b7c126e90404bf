from __future__ import annotations

import numpy as np
import pytest

from tests.export.fusions.graphs import fused, graph_of, normal

NUMBERS = {"two": 2.0, "one_": 1.0, "half": 0.5, "root": 2**0.5, "slope": (2 / np.pi) ** 0.5, "bend": 0.044715}
WEIGHTS = {"w": normal(6, 8), **{name: np.array(number, np.float32) for name, number in NUMBERS.items()}}
TYPES = {
    "x": "float[M, 6]",
    "r": "float[M, 8]",
    "one": "float[1, 8]",
    "f": "float[8]",
    "s": "float[8]",
    "g": "float[1, 8]",
}
FEEDS = {
    "x": normal(5, 6),
    "r": normal(5, 8),
    "one": normal(1, 8, seed=3),
    "f": normal(8, seed=1),
    "s": normal(8, seed=2),
    "g": normal(1, 8),
}
PRODUCT = "p = ai.retouch.RowLinear<transB = 0>(x, w, f) "


def operators(body: str, outputs: tuple[str, ...] = ("y",)) -> dict[str, int]:
    """The operators that a graph of these nodes has after the fusions."""
    used = [name for name in FEEDS if any(f"{name}{end}" in body.replace("(", " ") for end in (",", ")"))]
    inputs = ", ".join(f"{TYPES[name]} {name}" for name in used)
    results = ", ".join(f"float[M, 8] {name}" for name in outputs)
    model = graph_of(f"g ({inputs}) => ({results}) {{ {body} }}", WEIGHTS)
    return dict(fused(model, {name: FEEDS[name] for name in used}))


SILU = "c = Sigmoid(b) y = Mul(b, c)"
AFFINE = "a = Mul(p, f) b = Add(a, s) "


@pytest.mark.parametrize(
    ("behind", "name"),
    [
        ("y = Add(r, p)", "RowLinearAdded"),
        ("a = Mul(g, p) y = Add(a, r)", "RowLinearGatedAdded"),
        ("a = Mul(p, f) y = Add(s, a)", "RowLinearAffine"),
        (AFFINE + SILU, "RowLinearAffineSilu"),
        ("t = Add(p, r) a = Mul(t, f) b = Add(a, s) " + SILU, "RowLinearAddedAffineSilu"),
        ("c = Sigmoid(p) y = Mul(c, p)", "RowLinearSilu"),
        ("a = Div(p, root) b = Erf(a) c = Add(b, one_) d = Mul(p, c) y = Mul(d, half)", "RowLinearGelu"),
        (
            "a = Mul(p, p) b = Mul(a, p) c = Mul(b, bend) d = Add(p, c) e = Mul(slope, d) h = Tanh(e)"
            " j = Add(h, one_) l = Mul(p, half) y = Mul(l, j)",
            "RowLinearTanhGelu",
        ),
    ],
)
def test_what_stands_behind_a_product_is_its_tail(behind: str, name: str) -> None:
    assert operators(PRODUCT + behind) == {name: 1}


def test_a_sum_that_is_used_elsewhere_is_a_second_result() -> None:
    body = PRODUCT + "t = Add(p, r) a = Mul(t, f) b = Add(a, s) " + SILU
    assert operators(body, ("t", "y")) == {"RowLinearAddedKeptAffineSilu": 1}
    assert operators(body + " z = Add(t, y)", ("z",)) == {"RowLinearAddedKeptAffineSilu": 1, "Add": 1}


def test_rows_that_no_product_made_have_a_tail_of_their_own() -> None:
    body = "p = Concat<axis = 0>(r, one) " + AFFINE + SILU
    assert operators(body) == {"Concat": 1, "RowsAffineSilu": 1}


def test_halves_of_rows_have_tails() -> None:
    halves = "j = Concat<axis = 1>(r, r) a, b = Split<axis = 1, num_outputs = 2>(j) "
    assert operators(halves + "c = Sigmoid(b) d = Mul(b, c) y = Mul(a, d)") == {
        "Concat": 1,
        "Split": 1,
        "RowsSilu": 1,
        "Mul": 1,
    }


@pytest.mark.parametrize(
    "behind",
    [
        # It broadcasts.
        "y = Add(p, one)",
        # A half of an affine map, or of an activation.
        "y = Mul(p, f)",
        "y = Sigmoid(p)",
        # No activation of ours.
        "a = Mul(p, two) b = Sigmoid(a) y = Mul(p, b)",
    ],
)
def test_other_chains_stay(behind: str) -> None:
    assert operators(PRODUCT + behind)["RowLinear"] == 1


def test_an_inner_value_that_is_used_elsewhere_stays() -> None:
    found = operators(PRODUCT + AFFINE + SILU, ("y", "c"))
    assert found == {"RowLinearAffine": 1, "Sigmoid": 1, "Mul": 1}


def test_factors_that_follow_from_the_rows_stay() -> None:
    found = operators(PRODUCT + "m = ReduceMean<keepdims = 1>(p) a = Mul(p, m) y = Add(a, s)")
    assert found["RowLinear"] == 1


@pytest.mark.parametrize(
    ("behind", "name"),
    [
        ("y = Add(r, p)", "BatchRowLinearAdded"),
        (AFFINE + SILU, "BatchRowLinearAffineSilu"),
        ("t = Add(p, r) a = Mul(t, own) b = Add(a, s) " + SILU, "BatchRowLinearAddedAffineSilu"),
        ("j = Concat<axis = 0>(p, r) a = Mul(j, own) y = Add(a, s)", "BatchRowsAffine"),
    ],
)
def test_rows_of_several_samples_have_tails(behind: str, name: str) -> None:
    inputs = "float[M,2,6] x, float[M,2,8] r, float[8] f, float[8] s, float[2,8] own"
    body = "p = ai.retouch.BatchRowLinear<transB = 0>(x, w, f, form) " + behind
    outputs = "float[N,2,8] y"
    model = graph_of(f"g ({inputs}) => ({outputs}) {{ {body} }}", {**WEIGHTS, "form": np.array([-1, 2, 8])})
    feeds = {
        "x": normal(5, 2, 6),
        "r": normal(5, 2, 8),
        "f": normal(8),
        "s": normal(8, seed=1),
        "own": normal(2, 8),
    }
    assert name in fused(model, feeds)
