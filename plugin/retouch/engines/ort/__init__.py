"""ONNX Runtime as an engine. Implement nothing here."""

from __future__ import annotations

__all__ = [
    # The engine
    "DEFAULT_PROVIDER",
    "OrtEngine",
    "Provider",
    "WeightStorage",
    "checked_weights",
    # Models built ahead of time
    "COMPILING",
    "CUSTOM_OPS",
    "PrebuiltOrtEngine",
    "compiled",
    "custom_ops_library",
    # Graphs with states
    "InPlaceBinding",
    "InPlaceProgram",
    # What else runs a bundle's graphs on it
    "load_onnxruntime",
    "prune_file",
    # The memory and the threads it runs in
    "HugePages",
    "rest_between_runs",
]

from retouch.engines.ort._compile import COMPILING, compiled
from retouch.engines.ort._custom_ops import CUSTOM_OPS, custom_ops_library
from retouch.engines.ort._engine import OrtEngine, Provider
from retouch.engines.ort._huge_pages import HugePages
from retouch.engines.ort._in_place import InPlaceBinding, InPlaceProgram
from retouch.engines.ort._prebuilt import PrebuiltOrtEngine
from retouch.engines.ort._prune import prune_file
from retouch.engines.ort._rest import rest_between_runs
from retouch.engines.ort._runtime import DEFAULT_PROVIDER, load_onnxruntime
from retouch.engines.ort._weights import WeightStorage, checked_weights
