from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.ort_ep.single_node import claimed, make_model, neighbourhood, open_session, run_ours, run_reference

TOLERANCE = {"rtol": 2e-5, "atol": 2e-5}


def linear(
    rows: int, depth: int, columns: int, *, transposed: bool = False, bias: bool = True
) -> dict[str, np.ndarray | None]:
    rng = np.random.default_rng([rows, depth, columns])
    weight = rng.standard_normal((columns, depth) if transposed else (depth, columns)).astype(np.float32)
    return {
        "rows": rng.standard_normal((rows, depth)).astype(np.float32),
        "weight": weight / np.float32(np.sqrt(depth)),
        "bias": rng.standard_normal(columns).astype(np.float32) if bias else None,
    }


def convolution(
    active: int, channels: int, columns: int, taps: int, *, bias: bool = True
) -> dict[str, np.ndarray | None]:
    rng = np.random.default_rng([active, channels, columns])
    weight = rng.standard_normal((columns, taps * channels)).astype(np.float32) / np.float32(np.sqrt(taps * channels))
    return {
        **neighbourhood(rng, active, 40, taps, (channels,)),
        "weight": weight,
        "bias": rng.standard_normal(columns).astype(np.float32) if bias else None,
    }


def expected_convolution(feeds: dict[str, np.ndarray | None]) -> np.ndarray:
    """In double precision, tap by tap."""
    given = {name: value for name, value in feeds.items() if value is not None}
    table = np.concatenate([given["rows"], given["cached"][given["halo"]], given["pad"]]).astype(np.float64)
    active, taps = given["neighbours"].shape
    weight = given["weight"].reshape(len(given["weight"]), taps, -1).astype(np.float64)
    total = np.zeros((active, len(weight)))
    for tap in range(taps):
        total += table[given["neighbours"][:, tap]] @ weight[:, tap].T
    return total + given.get("bias", 0.0)


@pytest.mark.parametrize("rows", [0, 1, 5, 6, 7, 13, 64, 131])
@pytest.mark.parametrize(("depth", "columns"), [(1, 1), (7, 3), (64, 64), (300, 130), (600, 17)])
def test_linear_rows(rows: int, depth: int, columns: int) -> None:
    feeds = linear(rows, depth, columns)
    model = make_model("RowLinear", feeds, {"weight": feeds["weight"]}, {"transB": 0})
    exact = feeds["rows"].astype(np.float64) @ feeds["weight"].astype(np.float64) + feeds["bias"]
    np.testing.assert_allclose(run_ours(model, feeds), exact, **TOLERANCE)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("transposed", [True, False])
def test_linear_rows_as_their_body_computes_them(transposed: bool, bias: bool) -> None:
    feeds = linear(9, 40, 70, transposed=transposed, bias=bias)
    model = make_model("RowLinear", feeds, {"weight": feeds["weight"]}, {"transB": int(transposed)})
    np.testing.assert_allclose(run_ours(model, feeds), run_reference(model, feeds), **TOLERANCE)


def test_a_weight_that_is_no_constant_is_left_to_the_runtime() -> None:
    feeds = linear(9, 40, 70)
    session = open_session(make_model("RowLinear", feeds, None, {"transB": 0}))
    assert claimed(session) == []
    np.testing.assert_allclose(
        session.run(None, feeds)[0], feeds["rows"] @ feeds["weight"] + feeds["bias"], **TOLERANCE
    )


def test_a_weight_without_depth_is_left_to_the_runtime() -> None:
    feeds = linear(9, 1, 70, bias=False)
    feeds["rows"], feeds["weight"] = np.zeros((9, 0), np.float32), np.zeros((0, 70), np.float32)
    session = open_session(make_model("RowLinear", feeds, {"weight": feeds["weight"]}, {"transB": 0}))
    assert claimed(session) == []
    np.testing.assert_array_equal(session.run(None, {"rows": feeds["rows"]})[0], np.zeros((9, 70), np.float32))


def test_a_bias_of_another_shape_is_left_to_the_runtime() -> None:
    feeds = linear(9, 40, 70)
    feeds["bias"] = np.ones((9, 70), np.float32)
    session = open_session(
        make_model("RowLinear", feeds, {"weight": feeds["weight"], "bias": feeds["bias"]}, {"transB": 0})
    )
    assert claimed(session) == []
    np.testing.assert_allclose(
        session.run(None, {"rows": feeds["rows"]})[0], feeds["rows"] @ feeds["weight"] + 1, **TOLERANCE
    )


@pytest.mark.parametrize("active", [0, 1, 6, 8, 50, 133])
@pytest.mark.parametrize(("channels", "columns", "taps"), [(3, 5, 9), (70, 129, 9), (300, 33, 4), (16, 128, 1)])
def test_convolved_rows(active: int, channels: int, columns: int, taps: int) -> None:
    feeds = convolution(active, channels, columns, taps)
    model = make_model("EditConv", feeds, {"weight": feeds["weight"], "bias": feeds["bias"]})
    np.testing.assert_allclose(run_ours(model, feeds), expected_convolution(feeds), **TOLERANCE)


@pytest.mark.parametrize("threads", [1, 2, 4])
@pytest.mark.parametrize("columns", [40, 200])
def test_threads_give_the_same_bits(threads: int, columns: int) -> None:
    feeds = convolution(300, 32, columns, 9, bias=False)
    model = make_model("EditConv", feeds, {"weight": feeds["weight"]})
    np.testing.assert_array_equal(run_ours(model, feeds, threads), run_ours(model, feeds))
    np.testing.assert_allclose(run_ours(model, feeds, threads), run_reference(model, feeds), **TOLERANCE)


@pytest.mark.parametrize(("operand", "value"), [("halo", 40), ("neighbours", -1), ("neighbours", 10**9)])
def test_a_convolution_that_reads_outside_its_operands_is_an_error(operand: str, value: int) -> None:
    feeds = convolution(6, 4, 8, 9)
    feeds[operand].flat[1] = value
    session = open_session(make_model("EditConv", feeds, {"weight": feeds["weight"]}))
    del feeds["weight"]
    with pytest.raises(Exception, match=f"EditConv: expected every index of {operand} .*, got {value}"):
        session.run(None, feeds)


def test_taps_that_do_not_fit_the_weight_are_an_error() -> None:
    feeds = convolution(6, 4, 8, 9, bias=False)
    session = open_session(make_model("EditConv", feeds, {"weight": feeds["weight"]}, open_dims=True))
    del feeds["weight"], feeds["bias"]
    feeds["neighbours"] = feeds["neighbours"][:, :4]
    with pytest.raises(Exception, match="expected 4 taps of 4 channels to be as many as the weight has, got 36"):
        session.run(None, feeds)


@pytest.mark.parametrize("cpu", ["portable", "avx2"])
def test_other_instruction_sets_agree(cpu: str) -> None:
    """In a process of its own, because the choice is made once."""
    code = (
        "from tests.ort_ep.test_kernels_products import *\n"
        "feeds = convolution(23, 70, 65, 9)\n"
        "model = make_model('EditConv', feeds, {'weight': feeds['weight']})\n"
        "np.testing.assert_allclose(run_ours(model, feeds), expected_convolution(feeds), **TOLERANCE)\n"
        "feeds = linear(13, 300, 130)\n"
        "model = make_model('RowLinear', feeds, {'weight': feeds['weight']}, {'transB': 0})\n"
        "np.testing.assert_allclose(run_ours(model, feeds), run_reference(model, feeds), **TOLERANCE)\n"
    )
    environment = {**os.environ, "RETOUCH_ORT_EP_CPU": cpu}
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=root, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
