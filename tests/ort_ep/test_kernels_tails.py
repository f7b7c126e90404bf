"""Tails of products and of rows, against their function bodies."""

from __future__ import annotations

import numpy as np
import pytest

from retouch.export.ops import Activation, Tail
from tests.ort_ep.single_node import (
    claimed,
    make_model,
    neighbourhood,
    open_session,
    run_all_ours,
    run_all_reference,
)

TOLERANCE = {"rtol": 2e-5, "atol": 2e-5}
TAILS = [tail for tail in Tail.all() if tail.name]


def operands(tail: Tail, rows: int, columns: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng([rows, columns])
    every = {
        "gate": (tail.gated, (columns,)),
        "residual": (tail.added, (rows, columns)),
        "factor": (tail.affine, (columns,)),
        "shift": (tail.affine, (1, columns)),
    }
    return {name: rng.standard_normal(shape).astype(np.float32) for name, (there, shape) in every.items() if there}


def linear(tail: Tail, rows: int, columns: int, depth: int = 20) -> dict[str, np.ndarray | None]:
    rng = np.random.default_rng(depth)
    return {
        "rows": rng.standard_normal((rows, depth)).astype(np.float32),
        "weight": rng.standard_normal((depth, columns)).astype(np.float32),
        "bias": None,
        **operands(tail, rows, columns),
    }


def compare(op: str, feeds: dict[str, np.ndarray | None], tail: Tail, *, threads: int = 1) -> None:
    constants = {name: value for name, value in feeds.items() if name in ("weight", "bias") and value is not None}
    attributes = {"transB": 0} if op.startswith("RowLinear") else {}
    model = make_model(op + tail.name, feeds, constants, attributes)
    ours, expected = run_all_ours(model, feeds, threads), run_all_reference(model, feeds)
    assert len(ours) == 1 + tail.kept
    for got, wanted in zip(ours, expected, strict=True):
        np.testing.assert_allclose(got, wanted, **TOLERANCE)


@pytest.mark.parametrize("tail", TAILS, ids=lambda tail: tail.name)
def test_products_have_tails(tail: Tail) -> None:
    compare("RowLinear", linear(tail, 13, 70), tail)


@pytest.mark.parametrize("tail", [t for t in TAILS if t.added or not t.kept], ids=lambda tail: tail.name)
def test_rows_have_tails(tail: Tail) -> None:
    rows = np.random.default_rng(0).standard_normal((5, 37)).astype(np.float32)
    compare("Rows", {"rows": rows, **operands(tail, 5, 37)}, tail)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(("rows", "threads"), [(3, 1), (300, 1), (300, 2)])
def test_convolutions_have_tails(rows: int, threads: int, bias: bool) -> None:
    tail = Tail(added=True, kept=True, affine=True, activation=Activation.SILU)
    rng = np.random.default_rng(rows)
    feeds = {
        **neighbourhood(rng, rows, 40, 9, (8,)),
        "weight": rng.standard_normal((130, 72)).astype(np.float32) / np.float32(8),
        "bias": rng.standard_normal(130).astype(np.float32) if bias else None,
        **operands(tail, rows, 130),
    }
    compare("EditConv", feeds, tail, threads=threads)


@pytest.mark.parametrize("activation", [one for one in Activation if one.value], ids=lambda one: one.value)
def test_activations_are_exact_far_out(activation: Activation) -> None:
    tail = Tail(activation=activation)
    rows = np.concatenate([np.linspace(-100, 100, 4001), [0.0, -0.0, 1e-30, np.nan]]).astype(np.float32)[None]
    model = make_model("Rows" + tail.name, {"rows": rows})
    (got,), (wanted,) = run_all_ours(model, {"rows": rows}), run_all_reference(model, {"rows": rows.astype(np.float32)})
    np.testing.assert_allclose(got, wanted, rtol=3e-6, atol=5e-7)


def test_no_rows_have_tails() -> None:
    feeds = linear(Tail(kept=True, affine=True), 0, 6)
    model = make_model("RowLinearKeptAffine", feeds, {"weight": feeds["weight"]}, {"transB": 0})
    assert [result.shape for result in run_all_ours(model, feeds)] == [(0, 6), (0, 6)]


def test_a_residual_of_another_width_is_left_to_the_runtime() -> None:
    tail = Tail(added=True)
    feeds = linear(tail, 4, 6)
    feeds["residual"] = np.ones((4, 1), np.float32)
    model = make_model("RowLinearAdded", feeds, {"weight": feeds["weight"]}, {"transB": 0})
    session = open_session(model)
    assert claimed(session) == []
    given = {"rows": feeds["rows"], "residual": feeds["residual"]}
    np.testing.assert_allclose(session.run(None, given)[0], feeds["rows"] @ feeds["weight"] + 1, **TOLERANCE)


def test_a_residual_of_other_rows_is_an_error() -> None:
    tail = Tail(added=True)
    feeds = linear(tail, 4, 6)
    model = make_model("RowLinearAdded", feeds, {"weight": feeds["weight"]}, {"transB": 0})
    given = {"rows": feeds["rows"], "residual": np.ones((3, 6), np.float32)}
    with pytest.raises(Exception, match=r"RowLinear: expected residual \[4, 6\], got shape \[3, 6\]"):
        open_session(model).run(None, given)
