"""The demonstration: local edits of a generated terrain, timed and compared with full recomputation."""

from __future__ import annotations

__all__ = ["main"]

from retouch.validation.demo._main import main
