"""Threads of sessions that wait."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import onnxruntime

__all__ = ["rest_between_runs"]

_STOP = "session.force_spinning_stop"


def rest_between_runs(options: onnxruntime.SessionOptions) -> None:
    """Has the threads of a session sleep when its last run is over.

    They would wait busily for the next one otherwise, for a while. A base run is followed by an edit in another
    session, whose threads then share the cores with them: with two threads on two cores edits took twice as long.
    """
    options.add_session_config_entry(_STOP, "1")
