"""A generated scene, and what edits of it cost: colour, removal, strengths, all from one base."""

from __future__ import annotations

__all__ = ["main"]

from retouch.validation.story._main import main
