"""Folders that a process is filling, and those whose process is gone."""

from __future__ import annotations

import contextlib
import importlib
import os
import re
import secrets
import shutil
from pathlib import Path
from types import ModuleType

fcntl: ModuleType | None
try:
    fcntl = importlib.import_module("fcntl")
except ImportError:  # Windows: a folder that a killed process left stays
    fcntl = None

_NAME = re.compile(r"\.retouch-[0-9a-f]{8}\.partial")


class Claim:
    """A new folder that is this process's for as long as it holds the claim: the system ends it with the process.

    Attributes:
        path: the folder.
    """

    def __init__(self, parent: Path) -> None:
        """Makes a folder inside of ``parent``.

        Raises:
            OSError: it cannot be made.
        """
        name = f".retouch-{secrets.token_hex(4)}"
        made = parent / f"{name}.new"
        made.mkdir(parents=True)
        # Under its final name only once it is locked: another process would take it for left behind.
        self._lock = _locked(made)
        self.path = made.rename(parent / f"{name}.partial")

    def release(self) -> None:
        """Lets go of the folder, wherever it is by now."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def remove_abandoned(parent: Path) -> None:
    """Removes the folders in ``parent`` that killed processes left half filled."""
    if fcntl is None or not parent.is_dir():
        return
    for path in parent.iterdir():
        if _NAME.fullmatch(path.name) and path.is_dir() and not path.is_symlink():
            lock = _locked(path)
            if lock is not None:
                shutil.rmtree(path, ignore_errors=True)
                os.close(lock)


def _locked(folder: Path) -> int | None:
    """A lock on a folder, or ``None`` if another holds one, or the file system has none."""
    if fcntl is None:
        return None
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(descriptor)
            raise
        return descriptor
    return None
