"""States of a committed edit: the base run's, with the recomputed rows merged in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retouch.bundle import CacheableSpec
from retouch.region import ActiveRows


def merged_state(spec: CacheableSpec, cached: NDArray[Any], update: NDArray[Any], active: ActiveRows) -> NDArray[Any]:
    """A copy of a kept tensor with an update put in: rows at the active ones, a statistic as a whole."""
    if spec.row_axis is None or spec.grid is None:
        return update
    merged = cached.copy()
    index = (slice(None),) * spec.row_axis + (active.rows[spec.grid],)
    merged[index] = update
    return merged


def rows_of(spec: CacheableSpec, full: NDArray[Any], active: ActiveRows) -> NDArray[Any]:
    """The active rows of a kept tensor, as an edit graph would give them as an update."""
    if spec.row_axis is None or spec.grid is None:
        return full
    return np.take(full, active.rows[spec.grid], axis=spec.row_axis)


def merged_states(
    specs: Mapping[str, CacheableSpec],
    cached: Mapping[str, NDArray[Any]],
    updates: Mapping[str, NDArray[Any]],
    active: ActiveRows,
) -> dict[str, NDArray[Any]]:
    """All kept tensors of a committed edit; those without an update are shared with the base run."""
    return {
        key: merged_state(specs[key], array, updates[key], active) if key in updates else array
        for key, array in cached.items()
    }
