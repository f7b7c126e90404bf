"""How much of a change lies outside of its region."""

from __future__ import annotations

import math

import numpy as np
import pytest

from retouch.session import spill

INSIDE = np.zeros((4, 4), np.bool_)
INSIDE[1:3, 1:3] = True
BEFORE = np.random.default_rng(0).standard_normal((1, 3, 4, 4)).astype(np.float32)


def changed(inside: float, outside: float) -> np.ndarray:
    return np.where(INSIDE, BEFORE + np.float32(inside), BEFORE - np.float32(outside))


@pytest.mark.parametrize(("inside", "outside"), [(2.0, 0.5), (1.0, 3.0)])
def test_means_of_both_sides_are_compared(inside: float, outside: float) -> None:
    after = changed(inside, outside)
    assert spill(BEFORE, after, (2, 3), INSIDE) == pytest.approx(math.log(outside / inside), abs=1e-3)
    last = (np.moveaxis(values, 1, -1) for values in (BEFORE, after))
    assert spill(*last, (1, 2), INSIDE) == spill(BEFORE, after, (2, 3), INSIDE)


def test_what_cannot_be_compared_is_as_if_nothing_were_outside() -> None:
    least = spill(BEFORE, changed(1.0, 0.0), (2, 3), INSIDE)
    assert least == spill(BEFORE, BEFORE, (2, 3), INSIDE) == spill(BEFORE, -BEFORE, (2, 3), np.ones((4, 4), np.bool_))
    assert least < math.log(1e-3)
