"""Layouts: the order in which the axes of a row-carrying value stand in the edit graph.

A layout names base axes; ``GRID`` stands for the row axis that replaces the axes of the grid. Axes of size one may be
left out, which makes most reshapes and transposes of the base graph free.
"""

from __future__ import annotations

from retouch.export.lattice import Rows

__all__ = ["GRID", "Layout", "default_layout", "fused_shape", "without_units"]

GRID = -1
Layout = tuple[int, ...]


def default_layout(shape: tuple[int, ...], rows: Rows) -> Layout:
    """Rows first, then the other axes in base order, axes of size one left out."""
    return (GRID, *(axis for axis, size in enumerate(shape) if size != 1 and axis not in rows.axes))


def without_units(layout: Layout, shape: tuple[int, ...]) -> Layout:
    """A layout with its axes of size one left out."""
    return tuple(axis for axis in layout if axis == GRID or shape[axis] != 1)


def fused_shape(shape: tuple[int, ...], rows: Rows, layout: Layout) -> tuple[int, ...]:
    """The static shape of a value with all its rows in a layout."""
    return tuple(rows.grid.size if axis == GRID else shape[axis] for axis in layout)
