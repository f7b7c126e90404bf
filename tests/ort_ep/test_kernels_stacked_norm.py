"""StackedGroupNorm: the rows of every edit are normalised as EditGroupNorm normalises them alone."""

from __future__ import annotations

import numpy as np
import pytest

from retouch.export.ops import Activation, Tail
from tests.ort_ep.single_node import make_model, open_session, run_all_reference, run_ours, run_reference

TOLERANCE = {"rtol": 5e-5, "atol": 2e-5}
NO_TAIL = Tail()
POSITIONS = 300


def stack(
    counts: list[int], channels: int, groups: int, samples: int = 1, tail: Tail = NO_TAIL
) -> dict[str, np.ndarray]:
    """The rows of several edits of one cached value, which may be the same ones, and differ far from what was there."""
    rng = np.random.default_rng([channels, *counts])
    row = (channels,) if samples == 1 else (samples, channels)
    cached = rng.standard_normal((POSITIONS, *row)).astype(np.float32) + np.float32(0.5)
    index = np.concatenate([rng.permutation(POSITIONS)[:count] for count in counts]).astype(np.int64)
    owner = np.repeat(np.arange(len(counts)), counts)
    moved = cached[index] * (1 + owner.reshape(-1, *[1] * len(row))) + rng.standard_normal((len(index), *row))
    grouped = cached.astype(np.float64).reshape(POSITIONS, samples, groups, -1)
    moments = np.stack([grouped.mean(axis=(0, 3)), grouped.var(axis=(0, 3))]).astype(np.float32)
    feeds = {
        "rows": moved.astype(np.float32),
        "cached": cached,
        "index": index,
        "moments": moments,
        "grouping": np.array([samples, groups, channels // groups]),
        "share": np.array(groups / (POSITIONS * channels), np.float32),
        "epsilon": np.array(1e-5, np.float32),
        "owner": owner,
        "edits": np.arange(len(counts)),
    }
    if tail.affine:
        feeds |= {
            "factor": np.linspace(-1, 2, channels, dtype=np.float32),
            "shift": np.linspace(1, 0, channels, dtype=np.float32),
        }
    return feeds


def model_of(feeds: dict[str, np.ndarray], name: str) -> object:
    return make_model(name, feeds, {key: feeds[key] for key in ("grouping", "share", "epsilon")})


def alone(feeds: dict[str, np.ndarray], edit: int, name: str) -> np.ndarray:
    """What EditGroupNorm's body makes of the rows of one edit."""
    own = feeds["owner"] == edit
    given = {key: value for key, value in feeds.items() if key not in ("owner", "edits")}
    given |= {"rows": feeds["rows"][own], "index": feeds["index"][own]}
    return run_all_reference(make_model(name.replace("Stacked", "Edit"), given), given)[0]


@pytest.mark.parametrize("counts", [[1], [5, 3], [40, 1, 40, 40, 7], [200, 250]])
@pytest.mark.parametrize(("channels", "groups", "samples"), [(4, 2, 1), (70, 7, 1), (96, 32, 2)])
def test_every_edit_has_moments_of_its_own(counts: list[int], channels: int, groups: int, samples: int) -> None:
    name = ("Batch" if samples > 1 else "") + "StackedGroupNorm"
    feeds = stack(counts, channels, groups, samples)
    got = run_ours(model_of(feeds, name), feeds)
    for edit in range(len(counts)):
        np.testing.assert_allclose(got[feeds["owner"] == edit], alone(feeds, edit, name), **TOLERANCE)


@pytest.mark.parametrize("threads", [1, 2, 4])
@pytest.mark.parametrize("tail", [tail for tail in Tail.all() if tail.only_maps], ids=lambda tail: tail.name)
def test_norms_are_what_their_bodies_compute(tail: Tail, threads: int) -> None:
    name = "StackedGroupNorm" + tail.name
    feeds = stack([180, 2, 90], 96, 8, tail=tail)
    model = model_of(feeds, name)
    np.testing.assert_allclose(run_ours(model, feeds, threads), run_reference(model, feeds), **TOLERANCE)


def test_edits_without_rows_and_rows_in_any_order() -> None:
    feeds = stack([6, 0, 9], 33, 3, tail=Tail(affine=True, activation=Activation.SILU))
    order = np.random.default_rng(0).permutation(15)
    for key in ("rows", "index", "owner"):
        feeds[key] = feeds[key][order]
    model = model_of(feeds, "StackedGroupNormAffineSilu")
    np.testing.assert_allclose(run_ours(model, feeds), run_reference(model, feeds), **TOLERANCE)
    nothing = {key: value[:0] if key in ("rows", "index", "owner") else value for key, value in feeds.items()}
    assert run_ours(model, nothing).shape == (0, 33)


@pytest.mark.parametrize("value", [2, -1])
def test_an_owner_that_is_no_edit_is_an_error(value: int) -> None:
    feeds = stack([3, 4], 8, 2)
    feeds["owner"][5] = value
    with pytest.raises(
        Exception, match=f"StackedGroupNorm: expected every owner to be from 0 to before 2, got {value}"
    ):
        run_ours(model_of(feeds, "StackedGroupNorm"), feeds)


def test_edits_that_are_not_counted_from_zero_are_an_error() -> None:
    feeds = stack([3, 4], 8, 2)
    feeds["edits"] = np.array([1, 2])
    with pytest.raises(Exception, match="StackedGroupNorm: expected edits to count from 0"):
        run_ours(model_of(feeds, "StackedGroupNorm"), feeds)


def test_a_row_that_one_edit_names_twice_is_an_error() -> None:
    feeds = stack([3, 4], 8, 2)
    feeds["index"][:] = [4, 5, 6, 4, 7, 8, 7]
    session = open_session(model_of(feeds, "StackedGroupNorm"))
    given = {value.name: feeds[value.name] for value in session.get_inputs()}
    with pytest.raises(Exception, match="StackedGroupNorm: expected every row once, got row 7 more than once"):
        session.run(None, given)
