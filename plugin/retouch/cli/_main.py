"""The entry point: what happens before and around a command."""

from __future__ import annotations

import signal
import sys
from types import FrameType

_INTERRUPTED = 128 + signal.SIGINT
_TERMINATED = 128 + signal.SIGTERM


def main() -> None:
    """Runs the command line; asked to end, it removes what is half written and leaves without a traceback."""
    signal.signal(signal.SIGTERM, _end)
    try:
        # Imported here: that takes seconds, in which somebody may think better of it.
        from retouch.cli._app import app

        app()
    except KeyboardInterrupt:
        sys.stderr.write("Interrupted.\n")
        raise SystemExit(_INTERRUPTED) from None


def _end(_signal: int, _frame: FrameType | None) -> None:
    raise SystemExit(_TERMINATED)
