"""Paths from a directory to what lies elsewhere, for records that move together with both."""

from __future__ import annotations

import os
from pathlib import Path


def relative_path(target: Path, directory: Path) -> str:
    """The path from a directory to a target, with forward slashes; the absolute one if they lie on different drives."""
    try:
        return Path(os.path.relpath(target, directory)).as_posix()  # noqa: TID251 (pathlib has no way up before 3.12)
    except ValueError:
        return target.as_posix()


def path_from(directory: Path, relative: str) -> Path:
    """Where a path leads from a directory, which may be a link to where it really is."""
    return Path(os.path.normpath(directory.resolve() / relative))  # noqa: TID251 (Path.resolve follows links)
