"""The index inputs of an edit graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retouch.bundle import GridSpec, NeighbourhoodSpec
from retouch.region._active import ActiveRows
from retouch.region._blocks import block_inputs
from retouch.region._tables import axis_tables


def index_inputs(
    active: ActiveRows,
    neighbourhoods: Sequence[NeighbourhoodSpec],
    grids: Sequence[GridSpec],
    blocks: Sequence[GridSpec] = (),
) -> dict[str, NDArray[Any]]:
    """The inputs ``rows.<grid>``, ``neighbours.<id>``, ``halo.<id>`` and ``weights.<id>`` of an edit graph.

    For grids of blocks also ``members.<grid>`` and ``places.<grid>``.

    The graph looks rows up in a local table: the active rows of the source grid, the halo rows (source rows that are
    read and not active, ascending), and one pad row. An entry of ``neighbours`` is the local row times the number of
    taps per row, plus the tap.

    Args:
        active: the active rows of the grids and of every grid that a neighbourhood names.
        neighbourhoods: the neighbourhoods to build inputs for.
        grids: the grids to give the rows of.
        blocks: the grids of blocks to give members and places of.
    """
    return stacked_index_inputs((active,), neighbourhoods, grids, blocks)


def stacked_index_inputs(
    edits: Sequence[ActiveRows],
    neighbourhoods: Sequence[NeighbourhoodSpec],
    grids: Sequence[GridSpec],
    blocks: Sequence[GridSpec] = (),
) -> dict[str, NDArray[Any]]:
    """The same inputs of a stacked graph: the rows of one edit behind those of another.

    A row finds its neighbours among the active rows of its own edit; the halo holds what any edit reads besides.

    Args:
        edits: the active rows of every edit, of the same grids.
        neighbourhoods: the neighbourhoods to build inputs for.
        grids: the grids to give the rows of.
        blocks: the grids of blocks to give members and places of.
    """
    for active in edits:
        for grid_id in _named(neighbourhoods, [*grids, *blocks]):
            active.require(grid_id)
    inputs: dict[str, NDArray[Any]] = {f"rows.{grid.id}": _all_rows(edits, grid.id) for grid in grids}
    places = {grid: _places(edits, grid) for grid in {spec.source for spec in neighbourhoods}}
    coordinates = {grid: _coordinates(edits, grid) for grid in {spec.target for spec in neighbourhoods}}
    for spec in neighbourhoods:
        inputs.update(_neighbour_inputs(spec, edits, places[spec.source], coordinates[spec.target]))
    for grid in blocks:
        inputs.update(block_inputs(edits, grid))
    return inputs


def owner_inputs(edits: Sequence[ActiveRows], grids: Sequence[GridSpec]) -> dict[str, NDArray[np.int64]]:
    """The inputs ``owners.<grid>`` of a stacked graph, and ``edits``: whose row every row is, and the edits counted.

    Args:
        edits: the active rows of every edit.
        grids: the grids to give the owners of the rows of; without any there are no inputs.
    """
    numbers = np.arange(len(edits), dtype=np.int64)
    owners = {
        f"owners.{grid.id}": np.repeat(numbers, [active.rows[grid.id].size for active in edits]) for grid in grids
    }
    return {**owners, "edits": numbers} if owners else {}


def _named(neighbourhoods: Sequence[NeighbourhoodSpec], grids: Sequence[GridSpec]) -> list[str]:
    return [grid.id for grid in grids] + [grid for spec in neighbourhoods for grid in (spec.source, spec.target)]


def _all_rows(edits: Sequence[ActiveRows], grid: str) -> NDArray[np.int64]:
    return edits[0].rows[grid] if len(edits) == 1 else np.concatenate([active.rows[grid] for active in edits])


def _places(edits: Sequence[ActiveRows], grid: str) -> list[NDArray[np.int64]]:
    """Per edit: per row of the grid, and for the pad row after them, its place among all active rows or -1."""
    found, start = [], 0
    for active in edits:
        rows = active.rows[grid]
        places = np.full(np.prod(active.dims[grid], dtype=np.int64) + 1, -1, np.int64)
        places[rows] = np.arange(start, start + rows.size)
        start += rows.size
        found.append(places)
    return found


def _coordinates(edits: Sequence[ActiveRows], grid: str) -> tuple[NDArray[np.intp], ...]:
    return np.unravel_index(_all_rows(edits, grid), edits[0].dims[grid])


def _neighbour_inputs(
    spec: NeighbourhoodSpec,
    edits: Sequence[ActiveRows],
    places: Sequence[NDArray[np.int64]],
    coordinates: Sequence[NDArray[np.intp]],
) -> dict[str, NDArray[Any]]:
    tables = axis_tables(spec, edits[0].dims[spec.source], edits[0].dims[spec.target])
    rows = tables.source_rows(coordinates)
    neighbours = _own_places(rows, places, [active.rows[spec.target].size for active in edits])
    halo = _place_halo(neighbours, rows, sum(active.rows[spec.source].size for active in edits), tables.pad_row)
    taps = tables.source_taps(coordinates)
    if taps is not None:
        neighbours *= tables.tap_count
        neighbours += np.where(rows == tables.pad_row, 0, taps)
    inputs: dict[str, NDArray[Any]] = {f"neighbours.{spec.id}": neighbours, f"halo.{spec.id}": halo}
    weights = tables.source_weights(coordinates)
    if weights is not None:
        inputs[f"weights.{spec.id}"] = weights
    return inputs


def _own_places(
    rows: NDArray[np.int64], places: Sequence[NDArray[np.int64]], counts: Sequence[int]
) -> NDArray[np.int64]:
    """The places of the source rows [M, T] in the table of the edit that each target row belongs to."""
    if len(places) == 1:
        return places[0].take(rows)
    parts = np.split(rows, np.cumsum(counts)[:-1])
    return np.concatenate([own.take(part) for own, part in zip(places, parts, strict=True)])


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
