"""TokenLinear: products of tokens of any number of texts, against double precision and the function body."""

from __future__ import annotations

import numpy as np
import pytest

from tests.ort_ep.single_node import make_model, open_session, run_ours, run_reference

TOLERANCE = {"rtol": 2e-5, "atol": 2e-5}


def operands(shape: tuple[int, ...], columns: int) -> dict[str, np.ndarray | None]:
    rng = np.random.default_rng([*shape, columns])
    weight = rng.standard_normal((shape[-1], columns)).astype(np.float32)
    return {"tokens": rng.standard_normal(shape).astype(np.float32), "weight": weight}


@pytest.mark.parametrize("columns", [1, 64, 130])
@pytest.mark.parametrize("shape", [(5, 33), (1, 32, 64), (3, 7, 300), (2, 0, 8), (2, 3, 4, 5)])
def test_products_along_any_axes(shape: tuple[int, ...], columns: int) -> None:
    feeds = operands(shape, columns)
    model = make_model("TokenLinear", feeds, {"weight": feeds["weight"]})
    got = run_ours(model, feeds)
    exact = feeds["tokens"].astype(np.float64) @ feeds["weight"].astype(np.float64)
    np.testing.assert_allclose(got, exact, **TOLERANCE)
    np.testing.assert_allclose(got, run_reference(model, feeds), **TOLERANCE)


def test_every_token_is_computed_alike() -> None:
    feeds = operands((2, 40, 70), 130)
    model = make_model("TokenLinear", feeds, {"weight": feeds["weight"]}, open_dims=True)
    whole = run_ours(model, feeds, threads=2)
    one = {**feeds, "tokens": feeds["tokens"][1:, 7:8]}
    np.testing.assert_array_equal(run_ours(model, one), whole[1:, 7:8], "cached and uncached reads give the same bits")


def test_tokens_of_another_width_are_an_error() -> None:
    feeds = operands((2, 4, 6), 3)
    session = open_session(make_model("TokenLinear", feeds, {"weight": feeds["weight"]}, open_dims=True))
    with pytest.raises(Exception, match=r"TokenLinear: expected tokens \[\.\., 6\]"):
        session.run(None, {"tokens": np.zeros((2, 4, 5), np.float32)})
