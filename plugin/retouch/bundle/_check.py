"""Whether the files of a bundle are those that its manifest lists."""

from __future__ import annotations

import os
import typing
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal

from retouch.errors import BundleError
from retouch.files import FileSpec, check_file

Check = Literal["hash", "size", "none"]


def directory_of(path: str | os.PathLike[str]) -> Path:
    """The path of a bundle's directory.

    Raises:
        BundleError: it is no path.
    """
    if not isinstance(path, str | os.PathLike):
        raise BundleError(f"Expected the directory of a bundle, got {path!r}. Make one with `retouch export`.")
    return Path(path)


def check_files(files: Mapping[Path, FileSpec], check: Check) -> None:
    """Compares every file's SHA-256, only its size, or nothing.

    Raises:
        BundleError: there is no such check, or a file is missing, truncated or changed.
    """
    if check not in typing.get_args(Check):
        raise BundleError(f"check has to be one of {', '.join(typing.get_args(Check))}, but got {check!r}.")
    if check != "none":
        for path, spec in files.items():
            check_file(path, spec, damaged("export again"), hashed=check == "hash")


def damaged(remedy: str) -> Callable[[str], BundleError]:
    """What makes the error for a file that is not as the manifest says, with what to do about it."""
    return lambda message: BundleError(
        f"{message} The bundle is incomplete or was changed: copy the whole directory again, or {remedy}."
    )
