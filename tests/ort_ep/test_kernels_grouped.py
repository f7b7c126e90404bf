"""GroupedEditConv against double precision and its function body."""

from __future__ import annotations

import numpy as np
import pytest

from retouch.export.ops import Activation, Tail
from tests.ort_ep.single_node import claimed, make_model, neighbourhood, open_session, run_all_ours, run_all_reference

TOLERANCE = {"rtol": 2e-5, "atol": 2e-5}
NO_TAIL = Tail()
FULL = Tail(gated=True, added=True, kept=True, affine=True, activation=Activation.SILU)


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(np.float32)


def convolution(
    rows: int, groups: int, depth: int, width: int, taps: int, samples: int = 1, tail: Tail = NO_TAIL
) -> dict[str, np.ndarray]:
    """Operands of ``groups`` groups of ``depth`` channels and ``width`` columns; of one sample without its axis."""
    row = (groups * depth,) if samples == 1 else (samples, groups * depth)
    columns = (groups * width,) if samples == 1 else (samples, groups * width)
    feeds = {
        **neighbourhood(np.random.default_rng([rows, groups]), rows, 40, taps, row),
        "weight": normal(groups * width, taps * depth) / np.float32(np.sqrt(taps * depth)),
        "bias": normal(*columns),
    }
    if samples > 1:
        feeds["form"] = np.array([-1, *columns])
    operands = {
        "gate": (tail.gated, columns),
        "residual": (tail.added, (rows, *columns)),
        "factor": (tail.affine, columns[-1:]),
        "shift": (tail.affine, columns),
    }
    return feeds | {name: normal(*size, seed=7) for name, (there, size) in operands.items() if there}


def model_of(op: str, feeds: dict[str, np.ndarray], groups: int) -> object:
    varying = ("rows", "cached", "halo", "neighbours", "residual")
    constants = {name: value for name, value in feeds.items() if name not in varying}
    return make_model(op, feeds, constants, {"groups": groups})


def expected(feeds: dict[str, np.ndarray], groups: int) -> np.ndarray:
    """In double precision, group by group."""
    table = np.concatenate([feeds["rows"], feeds["cached"][feeds["halo"]], feeds["pad"]]).astype(np.float64)
    gathered = table[feeds["neighbours"]]
    active, taps, channels = gathered.shape
    by_group = gathered.reshape(active, taps, groups, channels // groups).transpose(2, 0, 1, 3)
    columns = by_group.reshape(groups, active, taps * channels // groups)
    weight = feeds["weight"].astype(np.float64).reshape(groups, -1, columns.shape[-1])
    return np.concatenate([c @ w.T for c, w in zip(columns, weight, strict=True)], axis=1) + feeds["bias"]


@pytest.mark.parametrize("rows", [0, 1, 7, 60])
@pytest.mark.parametrize(
    ("groups", "depth", "width", "taps"), [(2, 3, 5, 9), (8, 16, 16, 9), (3, 70, 33, 4), (4, 1, 2, 25)]
)
def test_groups_are_apart(rows: int, groups: int, depth: int, width: int, taps: int) -> None:
    feeds = convolution(rows, groups, depth, width, taps)
    (got,) = run_all_ours(model_of("GroupedEditConv", feeds, groups), feeds)
    np.testing.assert_allclose(got, expected(feeds, groups), **TOLERANCE)


@pytest.mark.parametrize("threads", [1, 2, 4])
@pytest.mark.parametrize("tail", [NO_TAIL, FULL], ids=lambda tail: tail.name)
@pytest.mark.parametrize(("rows", "samples"), [(300, 1), (13, 3)])
def test_tails_and_samples_as_the_body_computes_them(rows: int, samples: int, tail: Tail, threads: int) -> None:
    feeds = convolution(rows, 4, 8, 12, 9, samples, tail)
    name = ("Batch" if samples > 1 else "") + "GroupedEditConv" + tail.name
    model = model_of(name, feeds, 4)
    for got, wanted in zip(run_all_ours(model, feeds, threads), run_all_reference(model, feeds), strict=True):
        np.testing.assert_allclose(got, wanted, **TOLERANCE)


def test_groups_that_do_not_divide_the_columns_are_left_to_the_runtime() -> None:
    feeds = convolution(5, 2, 3, 3, 9)
    assert claimed(open_session(model_of("GroupedEditConv", feeds, 2))) == ["GroupedEditConv"]
    with pytest.raises(Exception, match="Reshape|reshape"):
        session = open_session(model_of("GroupedEditConv", feeds, 4))
        assert claimed(session) == []
        session.run(None, {name: feeds[name] for name in ("rows", "cached", "halo", "neighbours")})


@pytest.mark.parametrize(
    ("channels", "message"),
    [
        (8, "4 taps of 8 channels to be as many as the weight has, got 72 in 2 groups"),
        (9, "4 taps of 9 channels to be as many as the weight has, got 72 in 2 groups"),
    ],
)
def test_taps_that_do_not_fit_the_weight_are_an_error(channels: int, message: str) -> None:
    feeds = convolution(6, 2, 4, 3, 9)
    feeds["neighbours"] = feeds["neighbours"][:, :4]
    for name in ("rows", "cached", "pad"):
        feeds[name] = np.resize(feeds[name], (len(feeds[name]), channels))
    session = open_session(model_of("GroupedEditConv", feeds, 2))
    assert claimed(session) == ["GroupedEditConv"]
    with pytest.raises(Exception, match=message):
        session.run(None, {value.name: feeds[value.name] for value in session.get_inputs()})


def test_groups_that_do_not_divide_the_channels_are_an_error() -> None:
    """As many numbers in all as the weight takes, which belong to no groups."""
    feeds = convolution(6, 2, 4, 3, 9)
    feeds["neighbours"], feeds["weight"] = feeds["neighbours"][:, :8], feeds["weight"][:, :28]
    for name in ("rows", "cached", "pad"):
        feeds[name] = np.resize(feeds[name], (len(feeds[name]), 7))
    session = open_session(model_of("GroupedEditConv", feeds, 2))
    assert claimed(session) == ["GroupedEditConv"]
    with pytest.raises(Exception, match="8 taps of 7 channels to be as many as the weight has, got 56 in 2 groups"):
        session.run(None, {value.name: feeds[value.name] for value in session.get_inputs()})
