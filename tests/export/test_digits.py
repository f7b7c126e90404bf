"""Digits of positions, compared with what numpy's reshapes and transposes do to coordinates."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from retouch.export.digits import Digit, cut_at, joined_digits


def numbers(digits: tuple[Digit, ...]) -> np.ndarray:
    """The position along the axis that every combination of digits writes, row-major."""
    ranges = (range(0, digit.count * digit.stride, digit.stride) for digit in digits)
    return np.array([sum(parts) for parts in itertools.product(*ranges)])


@settings(max_examples=100, deadline=None, derandomize=True)
@given(sizes=st.lists(st.integers(1, 4), min_size=1, max_size=4), data=st.data())
def test_reshape_transpose_reshape(sizes: list[int], data: st.DataObject) -> None:
    total = int(np.prod(sizes))
    runs = cut_at([Digit(0, total)], sizes)
    assert runs is not None
    order = data.draw(st.permutations(range(len(sizes))))
    moved = tuple(digit for axis in order for digit in runs[axis])
    expected = np.arange(total).reshape(sizes).transpose(order).reshape(-1)
    np.testing.assert_array_equal(numbers(moved), expected)
    np.testing.assert_array_equal(numbers(joined_digits(moved)), expected)
    if np.array_equal(expected, np.arange(total)):
        assert joined_digits(moved) == ((Digit(0, total),) if total > 1 else ())


def test_a_boundary_within_a_digit() -> None:
    assert cut_at([Digit(0, 6), Digit(1, 4)], [8, 3]) is None
