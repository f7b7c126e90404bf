"""The command ``retouch``; the commands are imported when it runs. Implement nothing here."""

from __future__ import annotations

from typing import TYPE_CHECKING

__all__ = ["app", "main"]

from retouch.cli._main import main

if TYPE_CHECKING:
    from retouch.cli._app import app


def __getattr__(name: str) -> object:
    if name != "app":
        raise AttributeError(f"module 'retouch.cli' has no attribute {name!r}; its public names are app, main")
    from retouch.cli._app import app

    return app
