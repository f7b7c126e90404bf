"""The command ``retouch``."""

from __future__ import annotations

__all__ = ["app", "main"]

from retouch.cli._app import app, main
