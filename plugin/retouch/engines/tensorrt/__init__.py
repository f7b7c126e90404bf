"""TensorRT and TensorRT-RTX: engines built ahead of time, run on a GPU. Implement nothing here."""

from __future__ import annotations

__all__ = [
    # The engine
    "TensorRtEngine",
    # What it runs
    "Target",
    # The libraries, for who builds engines
    "Library",
    "Messages",
    "load_library",
    "logger",
    # Graphs as their parsers take them
    "with_given_operands",
    # Retouch's plugins
    "PLUGIN_LIBRARY",
    "plugin_library",
]

from retouch.engines.tensorrt._engine import TensorRtEngine
from retouch.engines.tensorrt._given_operands import with_given_operands
from retouch.engines.tensorrt._library import Library, load_library
from retouch.engines.tensorrt._messages import Messages, logger
from retouch.engines.tensorrt._plugins import PLUGIN_LIBRARY, plugin_library
from retouch.engines.tensorrt._target import Target
