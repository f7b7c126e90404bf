"""Models of known architecture for tests and benchmarks, exported on demand into a shared cache directory."""

from __future__ import annotations

__all__ = [
    "BENCHMARK_MODELS",
    "REFERENCE_MODELS",
    "BuiltModel",
    "ReferenceModel",
    "export_reference",
    "load_feeds",
    "reference_model",
    "require_terrain_package",
    "terrain",
]

from retouch.validation.reference_models._catalogue import (
    BENCHMARK_MODELS,
    REFERENCE_MODELS,
    reference_model,
)
from retouch.validation.reference_models._export import export_reference, load_feeds
from retouch.validation.reference_models._model import BuiltModel, ReferenceModel
from retouch.validation.reference_models._terrain_file import require_terrain_package, terrain
