"""Feeds are converted only where nothing is lost."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from retouch.bundle import TensorSpec
from retouch.errors import FeedError, NonFiniteError
from retouch.session._feeds import checked_feeds
from retouch.session._finite import check_finite

SPECS = [TensorSpec("x", "float32", (2,)), TensorSpec("t", "int64", (1,)), TensorSpec("flag", "bool", ())]
GOOD: dict[str, Any] = {"x": np.ones(2, np.float32), "t": np.array([5]), "flag": np.array(True)}


@pytest.mark.parametrize(
    ("name", "feed"),
    [
        ("x", np.array([1.5, np.nan])),
        ("x", np.array([1, 2])),
        ("x", [0.5, -np.inf]),
        ("x", np.array([1.5, 2.0], np.float16)),
        ("t", np.array([7], np.int32)),
        ("t", np.array([7], np.uint8)),
        ("t", np.array([500.0], np.float32)),
    ],
)
def test_lossless_conversions(name: str, feed: Any) -> None:
    checked = checked_feeds(SPECS, {**GOOD, name: feed})[name]
    assert str(checked.dtype) == next(spec.dtype for spec in SPECS if spec.name == name)
    np.testing.assert_array_equal(checked, np.asarray(feed))


@pytest.mark.parametrize(
    ("name", "feed", "message"),
    [
        ("x", np.array([0.1, 1.0]), "1 of its 2 elements would change their value"),
        ("x", np.array([1.0, 1e300]), "would change"),
        ("x", np.array([2**24 + 1, 1]), "would change"),
        ("t", np.array([0.5]), r"feed.astype\('int64'\)"),
        ("t", np.array([np.nan]), "would change"),
        ("t", np.array([2**63], np.uint64), "would change"),
        ("t", np.array([True]), "does not convert to it by itself"),
        ("x", np.array(["a", "b"]), "does not convert to it by itself"),
        ("x", np.array([1j, 2]), "does not convert to it by itself"),
        ("flag", np.array(1), "does not convert to it by itself"),
        ("x", [[1, 2], [3]], "give a numpy array"),
        ("x", np.ones((2, 1), np.float32), r"shape \(2,\), got \(2, 1\)"),
    ],
)
def test_everything_else_is_refused(name: str, feed: Any, message: str) -> None:
    with pytest.raises(FeedError, match=f"(?s){name!r}.*{message}"):
        checked_feeds(SPECS, {**GOOD, name: feed})


def test_names() -> None:
    with pytest.raises(FeedError, match="missing 't', 'flag'; extra 'y'"):
        checked_feeds(SPECS, {"x": GOOD["x"], "y": GOOD["x"]})
    assert list(checked_feeds(SPECS, {"t": GOOD["t"]}, partial=True)) == ["t"]
    with pytest.raises(FeedError, match="extra 'y'"):
        checked_feeds(SPECS, {"y": GOOD["x"]}, partial=True)


def test_feeds_are_copies() -> None:
    assert not np.shares_memory(checked_feeds(SPECS, GOOD)["x"], GOOD["x"])


def test_only_what_is_not_finite_is_reported() -> None:
    check_finite("y", np.full(4, 3e38, np.float32))
    check_finite("y", np.array([1, 2]))
    with pytest.raises(NonFiniteError, match=r"output 'y', got 1 NaN and 2 infinite elements out of 4"):
        check_finite("y", np.array([np.nan, np.inf, -np.inf, 0]))
