"""Bundles: the directory an export produces, its manifest, and how both are read and written.

Implement nothing here: one concept per private module.
"""

from __future__ import annotations

__all__ = [
    # The manifest
    "SCHEMA_VERSION",
    "Manifest",
    "ModelSpec",
    "EditableSpec",
    "TensorSpec",
    "OutputSpec",
    "GridSpec",
    "NeighbourhoodSpec",
    "CacheableSpec",
    "EditGraphSpec",
    "PlanRow",
    "FileSpec",
    "BreakEven",
    "total_bytes",
]

from retouch.bundle._manifest import (
    SCHEMA_VERSION,
    BreakEven,
    CacheableSpec,
    EditableSpec,
    EditGraphSpec,
    FileSpec,
    GridSpec,
    Manifest,
    ModelSpec,
    NeighbourhoodSpec,
    OutputSpec,
    PlanRow,
    TensorSpec,
    total_bytes,
)
