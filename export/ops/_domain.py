"""The operator domain."""

from __future__ import annotations

from onnxscript import values

__all__ = ["DOMAIN", "RETOUCH", "VERSION"]

DOMAIN = "ai.retouch"
VERSION = 1
RETOUCH = values.Opset(DOMAIN, VERSION)
