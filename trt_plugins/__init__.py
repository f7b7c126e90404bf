"""TensorRT: engines built ahead of time from bundles. Implement nothing here."""

from __future__ import annotations

__all__ = [
    # What to build
    "DEFAULT_ROWS",
    "BatchRange",
    "BuildOptions",
    "Precision",
    "Target",
    # Building
    "BuiltEngine",
    "build",
    "outdated",
]

from retouch.engines import Target
from retouch.trt_plugins._build import BuiltEngine, build, outdated
from retouch.trt_plugins._options import BatchRange, BuildOptions
from retouch.trt_plugins._precision import Precision
from retouch.trt_plugins._row_counts import DEFAULT_ROWS
