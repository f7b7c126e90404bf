"""The seam to inference engines: what a session asks of one, and nothing about any of them.

Implement nothing here. An engine lives in its own package below this one.
"""

from __future__ import annotations

__all__ = [
    "Binding",
    "Engine",
    "Movable",
    "Program",
    "Value",
]

from retouch.engines._protocol import Binding, Engine, Movable, Program, Value
