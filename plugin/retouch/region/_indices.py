"""The index inputs of an edit graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retouch.bundle import GridSpec, NeighbourhoodSpec
from retouch.region._active import ActiveRows
from retouch.region._tables import axis_tables


def index_inputs(
    active: ActiveRows, neighbourhoods: Sequence[NeighbourhoodSpec], grids: Sequence[GridSpec]
) -> dict[str, NDArray[Any]]:
    """The inputs ``rows.<grid>``, ``neighbours.<id>``, ``halo.<id>`` and ``weights.<id>`` of an edit graph.

    The graph looks rows up in a local table: the active rows of the source grid, the halo rows (source rows that are
    read and not active, ascending), and one pad row. An entry of ``neighbours`` is the local row times the number of
    taps per row, plus the tap.

    Args:
        active: the active rows of the grids and of every grid that a neighbourhood names.
        neighbourhoods: the neighbourhoods to build inputs for.
        grids: the grids to give the rows of.
    """
    for grid_id in _named(neighbourhoods, grids):
        active.require(grid_id)
    inputs: dict[str, NDArray[Any]] = {f"rows.{grid.id}": active.rows[grid.id] for grid in grids}
    places = {grid: _places(active, grid) for grid in {spec.source for spec in neighbourhoods}}
    coordinates = {
        grid: np.unravel_index(active.rows[grid], active.dims[grid])
        for grid in {spec.target for spec in neighbourhoods}
    }
    for spec in neighbourhoods:
        inputs.update(_neighbour_inputs(spec, active, places[spec.source], coordinates[spec.target]))
    return inputs


def _named(neighbourhoods: Sequence[NeighbourhoodSpec], grids: Sequence[GridSpec]) -> list[str]:
    return [grid.id for grid in grids] + [grid for spec in neighbourhoods for grid in (spec.source, spec.target)]


def _places(active: ActiveRows, grid: str) -> NDArray[np.int64]:
    """Per row of the grid, and for the pad row after them, its place among the active rows or -1."""
    rows = active.rows[grid]
    places = np.full(np.prod(active.dims[grid], dtype=np.int64) + 1, -1, np.int64)
    places[rows] = np.arange(rows.size)
    return places


def _neighbour_inputs(
    spec: NeighbourhoodSpec,
    active: ActiveRows,
    places: NDArray[np.int64],
    coordinates: Sequence[NDArray[np.intp]],
) -> dict[str, NDArray[Any]]:
    tables = axis_tables(spec, active.dims[spec.source], active.dims[spec.target])
    rows = tables.source_rows(coordinates)
    neighbours = places.take(rows)
    halo = _place_halo(neighbours, rows, active.rows[spec.source].size, tables.pad_row)
    taps = tables.source_taps(coordinates)
    if taps is not None:
        neighbours *= tables.tap_count
        neighbours += np.where(rows == tables.pad_row, 0, taps)
    inputs: dict[str, NDArray[Any]] = {f"neighbours.{spec.id}": neighbours, f"halo.{spec.id}": halo}
    weights = tables.source_weights(coordinates)
    if weights is not None:
        inputs[f"weights.{spec.id}"] = weights
    return inputs


def _place_halo(
    neighbours: NDArray[np.int64], rows: NDArray[np.int64], active_count: int, pad_row: int
) -> NDArray[np.int64]:
    """The halo rows; fills their places, and the pad row's, into ``neighbours`` where it is negative.

    The pad row's number is above every source row, so sorting puts it where the local table has it: at the end.
    """
    missing = np.flatnonzero(neighbours < 0)
    read = rows.reshape(-1)[missing]
    marked = np.zeros(pad_row + 1, np.bool_)
    marked[read] = True
    marked[pad_row] = True
    found = np.flatnonzero(marked)
    neighbours.reshape(-1)[missing] = active_count + np.searchsorted(found, read)
    return found[:-1]
