"""Grids as the manifest describes them."""

from __future__ import annotations

from retouch.bundle import BlocksSpec, GridSpec, JointSpec, PickedSpec, ViewSpec
from retouch.export.lattice import Grid, Joint, View

__all__ = ["grid_spec"]


def grid_spec(grid: Grid) -> GridSpec:
    """The manifest's description of a grid."""
    return GridSpec(
        grid.id,
        grid.dims,
        grid.origin,
        joint=None if grid.joint is None else _joint(grid.joint),
        view=None if grid.view is None else _view(grid.view),
        picked=None if grid.picked is None else PickedSpec(grid.picked.grid.id, grid.picked.positions),
        blocks=None if grid.blocks is None else BlocksSpec(grid.blocks.id),
    )


def _joint(joint: Joint) -> JointSpec:
    return JointSpec(joint.grid.id, joint.before, joint.after, joint.recomputed)


def _view(view: View) -> ViewSpec:
    digits = tuple(tuple((digit.axis, digit.count, digit.stride) for digit in run) for run in view.digits)
    return ViewSpec(view.grid.id, view.turns, digits)
