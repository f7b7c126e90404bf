"""Regions from masks, boxes, spans and rows, and what is refused."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from retouch.bundle import GridSpec
from retouch.errors import RegionError
from retouch.region import Region

SHAPES = st.lists(st.integers(1, 5), min_size=1, max_size=3).map(tuple)


@st.composite
def shapes_and_boxes(draw: st.DrawFn) -> tuple[tuple[int, ...], list[tuple[int, ...]]]:
    shape = draw(SHAPES)
    boxes = []
    for _ in range(draw(st.integers(1, 3))):
        starts = [draw(st.integers(0, size - 1)) for size in shape]
        stops = [draw(st.integers(start + 1, size)) for start, size in zip(starts, shape, strict=True)]
        boxes.append((*starts, *stops))
    return shape, boxes


@given(shapes_and_boxes())
def test_boxes(case: tuple[tuple[int, ...], list[tuple[int, ...]]]) -> None:
    shape, boxes = case
    mask = Region.from_boxes(boxes, shape).mask
    for position in itertools.product(*map(range, shape)):
        inside = any(all(b[d] <= p < b[d + len(shape)] for d, p in enumerate(position)) for b in boxes)
        assert mask[position] == inside


@given(SHAPES, st.data())
def test_rows(shape: tuple[int, ...], data: st.DataObject) -> None:
    total = math.prod(shape)
    rows = data.draw(st.lists(st.integers(0, total - 1), min_size=1, unique=True))
    region = Region.from_rows(rows, shape)
    assert np.flatnonzero(region.mask).tolist() == sorted(rows)
    assert region.mask.shape == shape
    assert region.area == pytest.approx(len(rows) / total)


def test_spans() -> None:
    assert Region.from_spans([(0, 2), (3, 4), (1, 2)], 5).mask.tolist() == [True, True, False, True, False]


def test_full_and_all_true_are_legal() -> None:
    assert Region.full((2, 3)).area == 1.0
    assert Region.from_mask(np.ones((2, 3), np.bool_)).area == 1.0


def test_mask_is_a_read_only_copy() -> None:
    mask = np.eye(3, dtype=np.bool_)
    region = Region.from_mask(mask)
    mask[:] = False
    assert region.mask.sum() == 3
    with pytest.raises(ValueError, match="read-only"):
        region.mask[0, 0] = False


def test_mask_may_be_nested_lists() -> None:
    assert Region.from_mask([[True, False]]).area == 0.5


@pytest.mark.parametrize(
    ("mask", "threshold"),
    [
        (np.ones((2, 2), np.uint8), "mask > 127"),
        (np.ones((2, 2), np.float32), "mask > 0.5"),
        (np.ones((2, 2), np.int64), "mask > 0"),
    ],
)
def test_mask_of_another_dtype(mask: NDArray[np.generic], threshold: str) -> None:
    with pytest.raises(RegionError) as error:
        Region.from_mask(mask)
    assert str(error.value) == (
        f"Expected a mask of dtype bool, got {mask.dtype}; threshold it first, for example `{threshold}`."
    )


Build = Callable[[], Region]
NOTHING = "There is nothing to edit: the mask of shape {} selects no position; set at least one position to True."


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Region.from_mask(np.zeros((2, 2), np.bool_)), NOTHING.format("(2, 2)")),
        (lambda: Region.from_mask(np.zeros((0, 2), np.bool_)), NOTHING.format("(0, 2)")),
        (lambda: Region.from_boxes([], (4, 4)), NOTHING.format("(4, 4)")),
        (lambda: Region.from_spans([], 4), NOTHING.format("(4,)")),
        (lambda: Region.from_rows([], (2, 4)), NOTHING.format("(2, 4)")),
        (
            lambda: Region.from_mask(np.True_),
            "Expected a mask with one axis per axis of the editable grid, got a single value.",
        ),
        (
            lambda: Region.from_boxes([(0, 0, 5, 2)], (4, 4)),
            "The box (0, 0, 5, 2) on a grid of shape (4, 4) is out of range: 0 to 5 does not lie in 0 to 4.",
        ),
        (
            lambda: Region.from_boxes([(0, -1, 2, 2)], (4, 4)),
            "The box (0, -1, 2, 2) on a grid of shape (4, 4) is out of range: -1 to 2 does not lie in 0 to 4.",
        ),
        (
            lambda: Region.from_boxes([(1, 2, 3, 2)], (4, 4)),
            "The box (1, 2, 3, 2) on a grid of shape (4, 4) is empty: 2 to 2; the stop must be greater than the start.",
        ),
        (
            lambda: Region.from_boxes([(1, 2, 3)], (4, 4)),
            "Expected 4 numbers per box on a grid of shape (4, 4) (the first corner, then the corner after the last "
            "one), got the box (1, 2, 3).",
        ),
        (
            lambda: Region.from_boxes([(0, 0, 1.5, 2)], (4, 4)),  # type: ignore[list-item]
            "Expected integers in the box (0, 0, 1.5, 2), got 1.5.",
        ),
        (
            lambda: Region.from_spans([(3, 9)], 8),
            "The span (3, 9) on a grid of length 8 is out of range: 3 to 9 does not lie in 0 to 8.",
        ),
        (
            lambda: Region.from_spans([(3, 3)], 8),
            "The span (3, 3) on a grid of length 8 is empty: 3 to 3; the stop must be greater than the start.",
        ),
        (lambda: Region.from_spans([(1, 2, 3)], 8), "Expected a span (start, stop), got (1, 2, 3)."),
        (
            lambda: Region.from_spans([("a", 2)], 8),  # type: ignore[list-item]
            "Expected integers in the span ('a', 2), got 'a'.",
        ),
        (
            lambda: Region.from_rows([0, 8], (2, 4)),
            "Row number 8 is out of range: a grid of shape (2, 4) has the rows 0 to 7.",
        ),
        (
            lambda: Region.from_rows([-1], (2, 4)),
            "Row number -1 is out of range: a grid of shape (2, 4) has the rows 0 to 7.",
        ),
        (
            lambda: Region.from_rows([5, 3, 5], (2, 4)),
            "Row number 5 is given more than once; give every row once, for example with np.unique.",
        ),
        (
            lambda: Region.from_rows([0.5], (2, 4)),
            "Expected a one-dimensional list of integer row numbers, got dtype float64 and shape (1,); use "
            "Region.from_mask for a mask and np.ravel_multi_index for coordinates.",
        ),
        (
            lambda: Region.from_rows([[0, 1]], (2, 4)),
            "Expected a one-dimensional list of integer row numbers, got dtype int64 and shape (1, 2); use "
            "Region.from_mask for a mask and np.ravel_multi_index for coordinates.",
        ),
        (lambda: Region.full((0, 4)), "Expected a grid shape of positive sizes, got (0, 4)."),
        (lambda: Region.full(()), "Expected a grid shape of positive sizes, got ()."),
        (
            lambda: Region.full((2.5, 4)),  # type: ignore[arg-type]
            "Expected integers in the shape (2.5, 4), got 2.5.",
        ),
    ],
)
def test_refused(build: Build, message: str) -> None:
    with pytest.raises(RegionError) as error:
        build()
    assert str(error.value) == message


@pytest.mark.parametrize("shape", [(1, 4, 4), (4, 5), (16,)])
def test_mask_of_another_shape_than_the_editable_grid(shape: tuple[int, ...]) -> None:
    editable = GridSpec("g0", (4, 4), "sample")
    with pytest.raises(RegionError) as error:
        Region.full(shape).active([editable], editable)
    assert str(error.value) == (
        f"Expected a region of shape (4, 4), the dims of the editable grid 'g0', got {shape}; give the mask at the "
        "resolution of the editable input, without batch and channel axes."
    )
