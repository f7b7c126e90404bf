"""EditGroupNorm against double precision and its function body."""

from __future__ import annotations

import numpy as np
import pytest

from retouch.export.ops import Tail
from tests.ort_ep.single_node import make_model, open_session, run_all_ours, run_all_reference

TOLERANCE = {"rtol": 5e-5, "atol": 2e-5}


def norm(rows: int, positions: int, channels: int, groups: int) -> dict[str, np.ndarray]:
    """A cached value and its moments, and rows that differ from it."""
    rng = np.random.default_rng([rows, channels])
    cached = rng.standard_normal((positions, channels)).astype(np.float32) + np.float32(0.5)
    index = rng.permutation(positions)[:rows].astype(np.int64)
    grouped = cached.astype(np.float64).reshape(positions, groups, -1)
    moments = np.stack([grouped.mean(axis=(0, 2)), grouped.var(axis=(0, 2))])[:, None].astype(np.float32)
    return {
        "rows": (cached[index] + rng.standard_normal((rows, channels))).astype(np.float32),
        "cached": cached,
        "index": index,
        "moments": moments,
        "grouping": np.array([1, groups, channels // groups], np.int64),
        "share": np.array(groups / (positions * channels), np.float32),
        "epsilon": np.array(1e-5, np.float32),
    }


CONSTANTS = ("grouping", "share", "epsilon", "moments")
NO_TAIL = Tail()


def model_of(feeds: dict[str, np.ndarray], tail: Tail = NO_TAIL) -> object:
    return make_model("EditGroupNorm" + tail.name, feeds, {name: feeds[name] for name in CONSTANTS})


@pytest.mark.parametrize(("rows", "positions"), [(1, 5), (7, 30), (64, 64), (300, 900)])
@pytest.mark.parametrize(("channels", "groups"), [(4, 2), (70, 7), (96, 32), (33, 1)])
def test_rows_are_normalised_by_the_moments_of_the_edited_value(
    rows: int, positions: int, channels: int, groups: int
) -> None:
    feeds = norm(rows, positions, channels, groups)
    got, moments = run_all_ours(model_of(feeds), feeds)
    edited = feeds["cached"].astype(np.float64)
    edited[feeds["index"]] = feeds["rows"]
    grouped = edited.reshape(positions, groups, -1)
    mean, variance = grouped.mean(axis=(0, 2)), grouped.var(axis=(0, 2))
    np.testing.assert_allclose(moments, np.stack([mean, variance])[:, None], **TOLERANCE)
    normed = (grouped - mean[:, None]) / np.sqrt(variance + 1e-5)[:, None]
    np.testing.assert_allclose(got, normed.reshape(positions, channels)[feeds["index"]], **TOLERANCE)


@pytest.mark.parametrize("tail", [tail for tail in Tail.all() if tail.only_maps], ids=lambda tail: tail.name)
@pytest.mark.parametrize("threads", [1, 2])
def test_norms_are_what_their_bodies_compute(tail: Tail, threads: int) -> None:
    feeds = norm(400, 900, 96, 8)
    if tail.affine:
        feeds |= {"factor": np.linspace(-1, 2, 96, dtype=np.float32), "shift": np.linspace(1, 0, 96, dtype=np.float32)}
    model = model_of(feeds, tail)
    for got, expected in zip(run_all_ours(model, feeds, threads), run_all_reference(model, feeds), strict=True):
        np.testing.assert_allclose(got, expected, **TOLERANCE)


@pytest.mark.parametrize("value", [30, -31])
def test_an_index_out_of_range_is_an_error(value: int) -> None:
    feeds = norm(7, 30, 8, 2)
    feeds["index"][1] = value
    given = {name: feeds[name] for name in ("rows", "cached", "index")}
    with pytest.raises(
        Exception, match=f"EditGroupNorm: expected every index to be from -30 to before 30, got {value}"
    ):
        open_session(model_of(feeds)).run(None, given)


def test_a_grouping_of_other_channels_is_an_error() -> None:
    feeds = norm(7, 30, 8, 2)
    feeds["grouping"][2] = 5
    session = open_session(make_model("EditGroupNorm", feeds))
    with pytest.raises(Exception, match=r"expected a grouping \[1, 2, channels of a group\] of 8 channels"):
        session.run(None, feeds)
