"""How far a builder is, and how it is stopped."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

__all__ = ["progress_monitor"]


def progress_monitor(trt: Any, name: str, tell: Callable[[str], None], cancelled: threading.Event) -> Any:  # noqa: ANN401
    """A progress monitor of the library.

    Args:
        trt: the library.
        name: what to call the graph.
        tell: called with a line when a phase begins that is no part of another one.
        cancelled: the builder stops at its next step once this is set.
    """

    class Monitor(trt.IProgressMonitor):  # type: ignore[misc]
        def __init__(self) -> None:
            trt.IProgressMonitor.__init__(self)

        def phase_start(self, phase: str, parent: str | None, steps: int) -> None:
            if parent is None:
                tell(f"{name}: {phase.lower()} ({steps} steps)")

        def step_complete(self, phase: str, step: int) -> bool:  # noqa: ARG002  (the interface's names)
            return not cancelled.is_set()

        def phase_finish(self, phase: str) -> None:
            pass

    return Monitor()
