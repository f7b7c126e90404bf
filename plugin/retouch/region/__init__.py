"""Regions, the rows they make active on every grid, and the index inputs an edit graph wants for them.

Implement nothing here: one concept per private module.
"""

from __future__ import annotations

__all__ = [
    # What an edit changes
    "DEFAULT_POLICY",
    "POLICIES",
    "Region",
    "RegionPolicy",
    # What it computes
    "ActiveRows",
    "index_inputs",
    # Several edits at once
    "attention_mask",
    "stacked_index_inputs",
    "owner_inputs",
    # Active rows in tensors of any layout
    "active_part",
    "merged_output",
    "with_rows",
    # Neighbourhoods, as the exporter writes them
    "COORDINATE_MODES",
    "CUBIC_COEFFICIENT",
    "NEAREST_MODES",
    "OUTSIDE",
    "AxisIndices",
    "AxisWeights",
    "ResizeFilter",
    "filtered_axis",
    "linear_axis",
    "nearest_axis",
    "transposed_axis",
    "window_axis",
]

from retouch.region._active import ActiveRows
from retouch.region._filters import CUBIC_COEFFICIENT, ResizeFilter, filtered_axis
from retouch.region._grid_rows import active_part, merged_output, with_rows
from retouch.region._indices import index_inputs, owner_inputs, stacked_index_inputs
from retouch.region._mask import attention_mask
from retouch.region._policy import DEFAULT_POLICY, POLICIES, RegionPolicy
from retouch.region._region import Region
from retouch.region._resize import COORDINATE_MODES, NEAREST_MODES, AxisWeights, linear_axis, nearest_axis
from retouch.region._windows import OUTSIDE, AxisIndices, transposed_axis, window_axis
