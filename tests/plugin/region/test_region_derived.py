"""Rows of grids that follow from others, compared with what numpy does to an array of row numbers."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from retouch.bundle import BlocksSpec, GridSpec, JointSpec, PickedSpec, ViewSpec
from retouch.region import ActiveRows, index_inputs

LEVEL = GridSpec("g", (4, 6), "x")


def mask_of(seed: int) -> NDArray[np.bool_]:
    mask = np.random.default_rng(seed).random(LEVEL.dims) < 0.4
    mask[1, 2] = True
    return mask


def rolled(size: int, shift: int) -> tuple[int, ...]:
    return tuple(np.roll(np.arange(size), shift).tolist())


def windows(shift: tuple[int, int]) -> GridSpec:
    """Windows of 2 x 3 of the rolled grid."""
    turns = (rolled(4, shift[0]), rolled(6, shift[1]))
    digits = (((0, 2, 2), (1, 2, 3)), ((0, 2, 1), (1, 3, 1)))
    return GridSpec("v", (4, 6), "x", view=ViewSpec("g", turns, digits))


@settings(max_examples=50, deadline=None, derandomize=True)
@given(seed=st.integers(0, 1000), down=st.integers(0, 3), right=st.integers(0, 5))
def test_windows_of_a_rolled_grid(seed: int, down: int, right: int) -> None:
    mask = mask_of(seed)
    active = ActiveRows.from_masks({"g": mask}, [LEVEL, windows((down, right))])
    numbers = np.roll(np.arange(24).reshape(4, 6), (down, right), (0, 1))
    order = numbers.reshape(2, 2, 2, 3).transpose(0, 2, 1, 3).reshape(-1)
    np.testing.assert_array_equal(order[active.rows["v"]], active.rows["g"])
    np.testing.assert_array_equal(active.mask("v").reshape(-1), mask.reshape(-1)[order])


@settings(max_examples=50, deadline=None, derandomize=True)
@given(seed=st.integers(0, 1000), positions=st.lists(st.integers(-1, 3), min_size=1, max_size=7))
def test_picked_rows(seed: int, positions: list[int]) -> None:
    mask = mask_of(seed)
    picked = GridSpec("p", (len(positions), 6), "x", picked=PickedSpec("g", (tuple(positions), tuple(range(6)))))
    active = ActiveRows.from_masks({"g": mask}, [LEVEL, picked])
    expected = np.array([mask[p] if p >= 0 else np.zeros(6, bool) for p in positions])
    np.testing.assert_array_equal(active.mask("p"), expected)


@settings(max_examples=50, deadline=None, derandomize=True)
@given(seeds=st.lists(st.integers(0, 1000), min_size=1, max_size=3))
def test_members_of_blocks(seeds: list[int]) -> None:
    grids = [LEVEL, windows((1, 2)), GridSpec("b", (4, 1), "x", blocks=BlocksSpec("v"))]
    active = ActiveRows.from_masks({"g": mask_of(seeds[0])}, grids)
    inputs = index_inputs(active, [], grids[:1], grids[2:])
    members, places = inputs["members.b"], inputs["places.b"]
    block = active.rows["v"] // 6
    np.testing.assert_array_equal(active.rows["b"], np.unique(block))
    assert members.shape == (active.rows["b"].size, np.bincount(block).max())
    np.testing.assert_array_equal(members.reshape(-1)[places], np.arange(block.size))
    np.testing.assert_array_equal(block[members], np.repeat(active.rows["b"][:, None], members.shape[1], axis=1))
    assert np.unique(places).size == places.size


def test_joint_sequence_of_a_view_keeps_its_order() -> None:
    flat = GridSpec("v", (24,), "x", view=ViewSpec("g", (rolled(4, 0), rolled(6, 0)), (((1, 6, 1), (0, 4, 1)),)))
    joint = GridSpec("j", (27,), "x", joint=JointSpec("v", 2, 1, True))
    active = ActiveRows.from_masks({"g": mask_of(3)}, [LEVEL, flat, joint])
    np.testing.assert_array_equal(active.rows["j"], [0, 1, *(active.rows["v"] + 2), 26])
