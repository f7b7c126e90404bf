"""Arguments of the wrong type get an error of Retouch's own that says what to write."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from retouch import Bundle, EditRequest, EditSession, Region
from retouch.errors import BundleError, FeedError, RegionError, RetouchError, RunError

GRID = (8, 8)
REGION = Region.from_boxes([(0, 0, 2, 2)], GRID)
MASK = np.ones(GRID, np.bool_)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda s, r: s.base(None),
            FeedError,
            r"a dictionary of arrays by input name, got NoneType. Write {'x': array}",
        ),
        (lambda s, r: s.edit(r, 5, region=REGION), FeedError, "dictionary of arrays by input name, got int"),
        (lambda s, r: s.edit(r, np.ones(3), region=REGION), FeedError, "by input name, got ndarray"),
        (lambda s, r: s.edit(5, region=REGION), RunError, r"a Run or the id of one, got int. Pass what base\(...\)"),
        (lambda s, r: s.edit(s.edit(r, region=REGION), region=REGION), RunError, r"got Result. .*result.commit\(\)"),
        (lambda s, r: s.drop(None), RunError, "got NoneType"),
        (lambda s, r: s.edit(r, region=REGION, policy=["fast"]), RegionError, "Expected a region policy among"),
        (
            lambda s, r: s.edit(r, region=[REGION, REGION]),
            RegionError,
            r"one for each sample of a batch; got 2.*single samples.*edit_many",
        ),
        (lambda s, r: s.edit_many(r, EditRequest(REGION)), RetouchError, r"a list of EditRequest, got EditRequest"),
        (lambda s, r: s.edit_many(r, [REGION]), RetouchError, r"a list of EditRequest, got Region"),
        (lambda s, r: s.edit_many(r, [EditRequest(REGION, None)]), FeedError, "by input name, got NoneType"),
    ],
)
def test_sessions(hand_built: Any, call: Callable[..., object], error: type[RetouchError], message: str) -> None:
    with EditSession(hand_built.bundle, threads=1) as session:
        run = session.base(hand_built.feeds())
        with pytest.raises(error, match=message):
            call(session, run)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Region.full(5), r"a grid shape as a tuple, like \(64, 64\), got 5"),
        (lambda: Region.full(None), r"a grid shape as a tuple"),
        (lambda: Region.from_boxes(5, GRID), r"a list of boxes, like \[\(y0, x0, y1, x1\)\], got 5"),
        (lambda: Region.from_boxes((0, 0, 2, 2), GRID), r"a box in a list, like \[\(y0, x0, y1, x1\)\], got 0"),
        (lambda: Region.from_spans((0, 2), 8), r"a span in a list, like \[\(start, stop\)\], got 0"),
        (lambda: Region.from_rows([[1], [1, 2]], GRID), "a list of row numbers, got: "),
        (lambda: Region.from_mask([[True], [True, False]]), "a mask of truth values, all rows of one length, got: "),
        (lambda: Region.from_mask(["a", "b"]), r"mask of dtype bool, got <U1; give a boolean array of the editable"),
        (lambda: Region.from_mask(MASK, 5), "a region policy among"),
        (lambda: Region(MASK, None), "a region policy among"),
    ],
)
def test_regions(call: Callable[[], object], message: str) -> None:
    with pytest.raises(RegionError, match=message):
        call()


def test_a_policy_may_be_named_to_the_constructor_too() -> None:
    assert Region(MASK, "fast").policy == Region.from_mask(MASK, "fast").policy


def test_what_sessions_are_made_of(hand_built: Any) -> None:
    with pytest.raises(BundleError, match="the directory of a bundle, got 5"):
        Bundle.open(5)  # type: ignore[arg-type]
    for providers in (5, [5], ["CPUExecutionProvider", None]):
        with pytest.raises(RetouchError, match="a list of execution providers, names or pairs"):
            EditSession(hand_built.bundle, providers=providers).open()  # type: ignore[arg-type]
    with pytest.raises(RetouchError, match="store to be a StateStore, got int"):
        EditSession(hand_built.bundle, store=5).open()  # type: ignore[arg-type]
