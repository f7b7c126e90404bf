"""Adapters for model families, and exports from torch."""

from __future__ import annotations

__all__ = [
    # Exports
    "TorchOptions",
    "export_pipeline",
    "export_torch",
    "is_pipeline",
    # Adapters
    "ADAPTERS",
    "Adapter",
    "adapter_for",
    "adapters_of",
    "named",
    # Their inputs
    "Input",
    "Role",
    "Sizes",
    "condition",
    "editable",
    "step",
]

from retouch.models._adapter import Adapter, named
from retouch.models._export import export_torch
from retouch.models._input import Input, Role, Sizes, condition, editable, step
from retouch.models._options import TorchOptions
from retouch.models._pipeline import export_pipeline, is_pipeline
from retouch.models._registry import adapter_for, adapters_of
from retouch.models.families import ADAPTERS
