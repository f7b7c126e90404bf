"""How much memory, time and disk the export of a large model takes."""

from __future__ import annotations

__all__ = ["main"]

from retouch.validation.size._main import main
