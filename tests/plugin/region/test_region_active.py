"""Active rows per grid against a reference that visits every position."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from retouch.bundle import GridSpec
from retouch.errors import RegionError
from retouch.region import ActiveRows, Region, RegionPolicy

Dims = tuple[int, ...]
Mask = NDArray[np.bool_]


def dilated_once(mask: Mask) -> Mask:
    """The mask and every position that touches it, also by a corner."""
    result = mask.copy()
    for position in itertools.product(*map(range, mask.shape)):
        for step in itertools.product((-1, 0, 1), repeat=mask.ndim):
            near = tuple(p + s for p, s in zip(position, step, strict=True))
            if all(0 <= n < size for n, size in zip(near, mask.shape, strict=True)) and mask[near]:
                result[position] = True
    return result


def dilated(mask: Mask, steps: int) -> Mask:
    for _ in range(steps):
        mask = dilated_once(mask)
    return mask


def resampled(mask: Mask, dims: Dims) -> Mask:
    """The cells that overlap a selected position; positions and cells as intervals of the same length in total."""
    result = np.zeros(dims, np.bool_)
    for cell in itertools.product(*map(range, dims)):
        for position in itertools.product(*map(range, mask.shape)):
            overlaps = all(
                p * cells < (c + 1) * size and c * size < (p + 1) * cells
                for p, c, size, cells in zip(position, cell, mask.shape, dims, strict=True)
            )
            result[cell] |= overlaps and mask[position]
    return result


def expected_mask(mask: Mask, dims: Dims, policy: RegionPolicy) -> Mask:
    coarser = np.prod(dims) < mask.size
    if len(dims) != mask.ndim or (coarser and np.prod(dims) <= policy.dense_rows):
        return np.ones(dims, np.bool_)
    result = resampled(dilated(mask, policy.dilation), dims)
    return dilated(result, policy.grid_dilation) if coarser else result


def dims_strategy(ndim: int) -> st.SearchStrategy[Dims]:
    return st.lists(st.integers(1, (12, 7, 4)[ndim - 1]), min_size=ndim, max_size=ndim).map(tuple)


@st.composite
def masks(draw: st.DrawFn) -> Mask:
    dims = draw(st.integers(1, 3).flatmap(dims_strategy))
    seed, share = draw(st.integers(0, 2**16)), draw(st.sampled_from([0.0, 0.1, 0.5, 1.0]))
    mask = np.random.default_rng(seed).random(dims) < share
    mask[tuple(draw(st.integers(0, size - 1)) for size in dims)] = True
    return mask


POLICY = st.builds(RegionPolicy, st.integers(0, 3), st.integers(0, 2), st.sampled_from([0, 3, 20]))


@given(masks(), POLICY, st.data())
def test_matches_the_reference(mask: Mask, policy: RegionPolicy, data: st.DataObject) -> None:
    editable = GridSpec("editable", mask.shape, "x")
    others = data.draw(st.lists(dims_strategy(mask.ndim), min_size=1, max_size=2))
    grids = [editable, *(GridSpec(f"g{number}", dims, "x") for number, dims in enumerate(others))]
    active = Region.from_mask(mask, policy).active(grids, editable)
    for grid in grids:
        expected = expected_mask(mask, grid.dims, policy)
        np.testing.assert_array_equal(active.mask(grid.id), expected, err_msg=grid.id)
        rows = active.rows[grid.id]
        assert rows.dtype == np.int64
        assert not rows.flags.writeable
        np.testing.assert_array_equal(rows, np.flatnonzero(expected))
        assert active.counts()[grid.id] == expected.sum()


def test_a_grid_of_another_number_of_axes_is_active_as_a_whole() -> None:
    editable = GridSpec("g0", (4, 4), "x")
    active = Region.from_rows([0], (4, 4), "exact").active([editable, GridSpec("pooled", (16,), "x")], editable)
    assert active.counts() == {"g0": 1, "pooled": 16}


def test_dense_rows_leaves_the_input_resolution_local() -> None:
    editable = GridSpec("g0", (16, 16), "x")
    region = Region.from_rows([0], (16, 16), RegionPolicy(0, dense_rows=256))
    assert region.active([editable, GridSpec("g1", (8, 8), "x")], editable).counts() == {"g0": 1, "g1": 64}


def test_fingerprint_tells_rows_dims_and_grids_apart() -> None:
    mask = np.array([[True, False], [False, False]])
    same = ActiveRows.from_masks({"a": mask, "b": ~mask})
    different = [
        ActiveRows.from_masks({"a": mask, "b": mask}),
        ActiveRows.from_masks({"a": ~mask, "b": mask}),
        ActiveRows.from_masks({"a": mask}),
        ActiveRows.from_masks({"a": mask.reshape(1, 4), "b": ~mask}),
    ]
    assert same.fingerprint == ActiveRows.from_masks({"b": ~mask, "a": mask.copy()}).fingerprint
    assert len({active.fingerprint for active in [same, *different]}) == 5


def test_full() -> None:
    active = ActiveRows.full([GridSpec("a", (2, 3), "x"), GridSpec("b", (4,), "x")])
    assert active.counts() == {"a": 6, "b": 4}


def test_unknown_grid() -> None:
    active = ActiveRows.full([GridSpec("a", (2, 3), "x"), GridSpec("b", (4,), "x")])
    with pytest.raises(RegionError) as error:
        active.mask("c")
    assert str(error.value) == (
        "No active rows were computed for grid 'c', only for 'a', 'b'; pass every grid of the bundle to Region.active."
    )


@pytest.mark.parametrize("mask", [np.ones((2, 2), np.uint8), np.array(True)])
def test_masks_of_another_kind(mask: Mask) -> None:
    with pytest.raises(RegionError) as error:
        ActiveRows.from_masks({"a": mask})
    assert str(error.value) == (
        f"Expected a boolean mask shaped like grid 'a', got dtype {mask.dtype} and shape {mask.shape}."
    )
