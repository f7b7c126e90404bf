"""The seam to inference engines: what a session asks of one, and which libraries there are.

Implement nothing here. An engine lives in its own package below this one.
"""

from __future__ import annotations

__all__ = [
    # What a session asks of an engine
    "Binding",
    "Engine",
    "Movable",
    "Program",
    "Value",
    # Libraries that run engines built ahead of time
    "Library",
    "Target",
    "load_library",
]

from retouch.engines._library import Library, load_library
from retouch.engines._protocol import Binding, Engine, Movable, Program, Value
from retouch.engines._target import Target
