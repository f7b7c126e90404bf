"""A directory under a second name, for as long as something else takes its place."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from retouch.files._claim import Claim, remove_abandoned


@contextlib.contextmanager
def linked_copy(folder: Path) -> Iterator[Path | None]:
    """A copy of a folder beside it, whose files are links and cost no room; ``None`` where none can be made.

    It is there until the context ends, whatever becomes of the folder; if the process is killed, until something else
    is written beside it.
    """
    parent = folder.resolve().parent
    try:
        remove_abandoned(parent)
        claim = Claim(parent)
    except OSError:
        yield None
        return
    try:
        yield _linked(folder, claim.path / folder.name)
    finally:
        shutil.rmtree(claim.path, ignore_errors=True)
        claim.release()


def _linked(folder: Path, copy: Path) -> Path | None:
    try:
        shutil.copytree(folder, copy, copy_function=os.link)
    except (OSError, shutil.Error):
        return None
    return copy
