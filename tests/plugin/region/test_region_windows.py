"""Source lists of windows against the sums that define convolution."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retouch.region import OUTSIDE, transposed_axis, window_axis

SIZE = st.integers(1, 9)
STEP = st.integers(1, 3)
PAD = st.integers(-2, 3)


@given(SIZE, SIZE, st.integers(1, 4), STEP, PAD, STEP)
def test_window(size_in: int, size_out: int, kernel: int, stride: int, pad: int, dilation: int) -> None:
    sources = window_axis(size_in, size_out, kernel, stride, pad, dilation)
    assert len(sources) == size_out
    for position, entries in enumerate(sources):
        assert len(entries) == kernel
        for tap, source in enumerate(entries):
            coordinate = position * stride - pad + tap * dilation
            assert source == (coordinate if 0 <= coordinate < size_in else OUTSIDE)


@given(SIZE, SIZE, st.integers(1, 5), STEP, PAD, STEP)
def test_transposed(size_in: int, size_out: int, kernel: int, stride: int, pad: int, dilation: int) -> None:
    sources, taps = transposed_axis(size_in, size_out, kernel, stride, pad, dilation)
    expected: list[list[tuple[int, int]]] = [[] for _ in range(size_out)]
    for source in range(size_in):
        for tap in range(kernel):
            position = source * stride + tap * dilation - pad
            if 0 <= position < size_out:
                expected[position].append((source, tap))
    width = max(1, *map(len, expected))
    for own_sources, own_taps, reads in zip(sources, taps, expected, strict=True):
        pairs = list(zip(own_sources, own_taps, strict=True))
        assert len(pairs) == width
        assert sorted(pairs[: len(reads)]) == sorted(reads)
        assert pairs[len(reads) :] == [(OUTSIDE, 0)] * (width - len(reads))


@pytest.mark.parametrize(("kernel", "stride", "entries"), [(2, 2, 1), (3, 2, 2), (4, 2, 2), (3, 1, 3), (1, 3, 1)])
def test_transposed_reads_no_more_than_it_must(kernel: int, stride: int, entries: int) -> None:
    sources, _ = transposed_axis(8, (8 - 1) * stride + kernel, kernel, stride)
    assert {len(row) for row in sources} == {entries}
