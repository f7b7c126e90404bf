"""One process at a time works on a file or a folder."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

from retouch.files._claim import fcntl


@contextlib.contextmanager
def exclusive(path: Path, waiting: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Holds a file or a folder that is there; who else wants to hold it waits. A process that ends lets go.

    Nothing is written, so that the path may be read-only. Where a system has no such locks, nobody waits.

    Args:
        path: what to hold.
        waiting: called once if somebody else holds it.
    """
    if fcntl is None:  # Windows
        yield
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        _hold(fcntl, descriptor, waiting)
        yield
    finally:
        os.close(descriptor)


def _hold(locks: ModuleType, descriptor: int, waiting: Callable[[], None]) -> None:
    try:
        locks.flock(descriptor, locks.LOCK_EX | locks.LOCK_NB)
    except BlockingIOError:
        waiting()
        locks.flock(descriptor, locks.LOCK_EX)
    except OSError:  # the file system has none
        return
