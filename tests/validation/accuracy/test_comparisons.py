"""Comparisons match outputs by name and judge by the bounds they are given."""

from __future__ import annotations

import numpy as np
import pytest

from retouch.errors import VerificationError
from retouch.validation.accuracy._comparisons import NO_BOUND, compare_bounded, compare_quality, merged

PAIR = ("one", "other")
ONES = np.ones(4, np.float32)


def test_a_bound_of_zero_catches_one_bit() -> None:
    assert compare_bounded(PAIR, {"a": ONES}, {"a": ONES.copy()}, {"a": 0.0})
    assert not compare_bounded(PAIR, {"a": ONES}, {"a": np.nextafter(ONES, np.float32(2))}, {"a": 0.0})


def test_the_absolute_bound_alone_decides() -> None:
    # By Polygraphy's default, a relative error of 1e-5 would pass as well.
    large = np.full(4, 1e4, np.float32)
    assert not compare_bounded(PAIR, {"a": large}, {"a": large + np.float32(0.01)}, {"a": 1e-3})
    assert compare_bounded(PAIR, {"a": large}, {"a": large + np.float32(0.01)}, {"a": 0.02})


@pytest.mark.parametrize("got", [{"b": ONES}, {"a": ONES, "b": ONES}, {}])
def test_other_names_are_an_error(got: dict[str, np.ndarray]) -> None:
    with pytest.raises(VerificationError, match=r"Expected the outputs \['a'\] of 'other'"):
        compare_bounded(PAIR, {"a": ONES}, got, {"a": 1.0})


def test_quality_against_a_given_peak() -> None:
    psnr, cosine, largest = compare_quality(PAIR, {"a": ONES}, {"a": ONES + 0.1}, {"a": 2.0}, {"a": 30.0})
    assert psnr[PAIR][0]["a"].psnr == pytest.approx(20 * np.log10(2 / 0.1), abs=1e-3)
    assert not psnr and cosine and largest
    assert largest[PAIR][0]["a"].max_absdiff == pytest.approx(0.1, rel=1e-5)


def test_cases_become_iterations() -> None:
    right = compare_bounded(PAIR, {"a": ONES}, {"a": ONES}, {"a": 0.0})
    wrong = compare_bounded(PAIR, {"a": ONES}, {"a": ONES + 1}, {"a": 0.0})
    both = merged([right, wrong])
    assert [bool(result["a"]) for result in both[0][PAIR]] == [True, False]
    assert not both and NO_BOUND < 0
