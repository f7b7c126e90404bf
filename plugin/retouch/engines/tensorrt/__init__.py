"""TensorRT and TensorRT-RTX: engines built ahead of time, run on a GPU. Implement nothing here."""

from __future__ import annotations

__all__ = [
    # The engine
    "TensorRtEngine",
    # The library's messages and the card, for who builds engines
    "Messages",
    "card_name",
    "logger",
    # Graphs as their parsers take them
    "with_given_operands",
    # Retouch's plugins
    "PLUGIN_LIBRARY",
    "plugin_library",
]

from retouch.engines.tensorrt._cuda import card_name
from retouch.engines.tensorrt._engine import TensorRtEngine
from retouch.engines.tensorrt._given_operands import with_given_operands
from retouch.engines.tensorrt._messages import Messages, logger
from retouch.engines.tensorrt._plugins import PLUGIN_LIBRARY, plugin_library
