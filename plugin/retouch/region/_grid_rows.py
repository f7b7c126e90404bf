"""Active rows inside tensors of any layout."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retouch.bundle import OutputSpec
from retouch.region._active import ActiveRows


def active_part(output: OutputSpec, array: NDArray[Any], active: ActiveRows) -> NDArray[Any]:
    """The entries of a model output that an edit may change: those at active rows, with the grid's axes first."""
    if output.grid is None:
        return array
    part: NDArray[Any] = _grid_first(output, array)[_coordinates(output, output.grid, active)]
    return part


def merged_output(output: OutputSpec, base: NDArray[Any], new: NDArray[Any], active: ActiveRows) -> NDArray[Any]:
    """The new output at active rows, the base output bit for bit everywhere else; in fresh memory if it has rows."""
    if output.grid is None:
        return new
    if len(active.rows[output.grid]) == math.prod(active.dims[output.grid]):
        return new.copy()
    return with_rows(output, base, active_part(output, new, active), active)


def with_rows(output: OutputSpec, base: NDArray[Any], rows: NDArray[Any], active: ActiveRows) -> NDArray[Any]:
    """The base output with other rows [M, ...] at the active rows of the output's grid; axes of size one may lack."""
    assert output.grid is not None
    merged = base.copy()
    by_row, coordinates = _grid_first(output, merged), _coordinates(output, output.grid, active)
    by_row[coordinates] = rows.reshape(len(coordinates[0]), *by_row.shape[len(coordinates) :])
    return merged


def _grid_first(output: OutputSpec, array: NDArray[Any]) -> NDArray[Any]:
    return np.moveaxis(array, output.axes, range(len(output.axes)))


def _coordinates(output: OutputSpec, grid: str, active: ActiveRows) -> tuple[NDArray[np.intp], ...]:
    """The active rows as indices along the output's axes: one axis holds all rows, or one axis each grid axis."""
    dims = active.dims[grid] if len(output.axes) > 1 else (math.prod(active.dims[grid]),)
    return np.unravel_index(active.rows[grid], dims)
