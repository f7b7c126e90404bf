"""Index inputs and masks of stacked edits, against those of every edit alone."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from retouch.bundle import GridSpec, NeighbourhoodSpec
from retouch.region import ActiveRows, attention_mask, index_inputs, stacked_index_inputs, window_axis

DIMS = (5, 6)
GRID = GridSpec("g", DIMS, "x")
AXES = tuple(window_axis(size, size, kernel=3, pad_begin=1) for size in DIMS)
WINDOW = NeighbourhoodSpec("w", "g", "g", AXES, None, (1, 1))


def _edits(masks: list[list[bool]]) -> list[ActiveRows]:
    return [ActiveRows.from_masks({"g": np.array(mask).reshape(DIMS)}) for mask in masks]


MASKS = st.lists(
    st.lists(st.booleans(), min_size=30, max_size=30).filter(any),
    min_size=1,
    max_size=4,
)


@given(MASKS)
def test_every_row_reads_what_it_reads_alone(masks: list[list[bool]]) -> None:
    """A table holds edit * 100 + row for active rows, the row itself for cached ones, -1 for the pad row."""
    edits = _edits(masks)
    stacked = stacked_index_inputs(edits, [WINDOW], [GRID])
    active = np.concatenate([100 * (e + 1) + edit.rows["g"] for e, edit in enumerate(edits)])
    table = np.concatenate([active, stacked["halo.w"], [-1]])
    read = table[stacked["neighbours.w"]]
    start = 0
    for number, edit in enumerate(edits):
        alone = index_inputs(edit, [WINDOW], [GRID])
        own = np.concatenate([100 * (number + 1) + edit.rows["g"], alone["halo.w"], [-1]])
        stop = start + edit.rows["g"].size
        np.testing.assert_array_equal(read[start:stop], own[alone["neighbours.w"]])
        np.testing.assert_array_equal(stacked["rows.g"][start:stop], edit.rows["g"])
        start = stop


@given(MASKS)
def test_every_row_sees_each_position_once_in_its_own_edit(masks: list[list[bool]]) -> None:
    edits = _edits(masks)
    seen = attention_mask(edits, "g", "g")
    owner = np.concatenate([np.full(edit.rows["g"].size, number) for number, edit in enumerate(edits)])
    position = np.concatenate([np.arange(30), *(edit.rows["g"] for edit in edits)])
    for row, edit in zip(seen, owner, strict=True):
        assert sorted(position[row > 0]) == list(range(30))
        assert set(np.flatnonzero(row[30:] > 0)) == set(np.flatnonzero(owner == edit))
    assert set(np.unique(seen)) <= {0.0, 1.0}
