"""Grids that do not follow from others as the manifest says are told apart from those that do."""

from __future__ import annotations

import dataclasses

import pytest

from retouch.bundle import BlocksSpec, GridSpec, JointSpec, PickedSpec, ViewSpec
from retouch.bundle._grid_faults import grid_faults

LEVEL = GridSpec("g", (4, 6), "x")
STRAIGHT = (tuple(range(4)), tuple(range(6)))
WINDOWS = (((0, 2, 2), (1, 2, 3)), ((0, 2, 1), (1, 3, 1)))
VIEW = GridSpec("v", (4, 6), "x", view=ViewSpec("g", STRAIGHT, WINDOWS))


def view(**changes: object) -> GridSpec:
    assert VIEW.view is not None
    return dataclasses.replace(VIEW, view=dataclasses.replace(VIEW.view, **changes))


SOUND = [
    VIEW,
    GridSpec("j", (27,), "x", joint=JointSpec("g", 1, 2, True)),
    GridSpec("p", (3, 6), "x", picked=PickedSpec("g", ((-1, 0, 3), STRAIGHT[1]))),
    GridSpec("b", (4, 1), "x", blocks=BlocksSpec("g")),
]
FAULTY = {
    "dims": dataclasses.replace(VIEW, dims=(6, 4)),
    "a_turn_that_repeats": view(turns=((0, 0, 1, 2), STRAIGHT[1])),
    "a_turn_too_few": view(turns=STRAIGHT[:1]),
    "digits_that_overlap": view(digits=(((0, 2, 1), (1, 2, 3)), ((0, 2, 1), (1, 3, 1)))),
    "digits_of_another_axis": view(digits=(((0, 2, 2), (2, 2, 3)), ((0, 2, 1), (1, 3, 1)))),
    "digits_that_leave_some_out": view(digits=(((0, 2, 2), (1, 2, 1)), ((0, 2, 1), (1, 3, 3)))),
    "joint_length": GridSpec("j", (26,), "x", joint=JointSpec("g", 1, 2, True)),
    "a_position_outside": GridSpec("p", (3, 6), "x", picked=PickedSpec("g", ((0, 1, 4), STRAIGHT[1]))),
    "an_axis_too_few": GridSpec("p", (3,), "x", picked=PickedSpec("g", ((0, 1, 2),))),
    "blocks_of_other_dims": GridSpec("b", (2, 1), "x", blocks=BlocksSpec("g")),
    "another_grid_behind_it": GridSpec("b", (4, 1), "x", blocks=BlocksSpec("later")),
    "two_ways": dataclasses.replace(VIEW, blocks=BlocksSpec("g")),
    "no_dims": GridSpec("e", (), "x"),
    "an_empty_dim": GridSpec("e", (4, 0), "x"),
}


def test_sound_grids() -> None:
    assert list(grid_faults([LEVEL, *SOUND])) == []


@pytest.mark.parametrize("case", FAULTY)
def test_faulty_grids(case: str) -> None:
    grid = FAULTY[case]
    (fault,) = grid_faults([LEVEL, grid])
    assert repr(grid.id) in fault


def test_a_grid_described_twice() -> None:
    assert list(grid_faults([LEVEL, LEVEL])) == ["describes the grid 'g' twice"]


def test_a_view_of_a_view() -> None:
    again = GridSpec("w", (4, 6), "x", view=ViewSpec("v", STRAIGHT, WINDOWS))
    assert list(grid_faults([LEVEL, VIEW, again])) != []
