"""Size and hash of files, by which a record of them is checked."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from retouch.files._file import sha256_of

_SHOWN = 16


@dataclass(frozen=True)
class FileSpec:
    """Size and SHA-256 of a file."""

    bytes: int
    sha256: str


def describe_file(path: Path) -> FileSpec:
    """Size and SHA-256 of a file."""
    return FileSpec(path.stat().st_size, sha256_of(path))


def check_file(path: Path, spec: FileSpec, fault: Callable[[str], Exception], *, hashed: bool = True) -> None:
    """Checks that a file is as it was described.

    Args:
        path: the file.
        spec: its size and hash.
        fault: makes the exception to raise from a message that says what was expected and what was got.
        hashed: whether to compare its hash, beside its size.
    """
    if not path.is_file():
        raise fault(f"Expected the file {path}, but it does not exist.")
    size = path.stat().st_size
    if size != spec.bytes:
        raise fault(f"Expected {path} to have {spec.bytes} bytes, got {size}.")
    digest = sha256_of(path) if hashed else spec.sha256
    if digest != spec.sha256:
        raise fault(f"Expected {path} to have the SHA-256 {spec.sha256[:_SHOWN]}..., got {digest[:_SHOWN]}....")


def digest_of(files: Mapping[str, FileSpec]) -> str:
    """A digest of the contents of files and their names, equal for equal ones wherever they lie."""
    digest = hashlib.sha256()
    for name, spec in sorted(files.items()):
        digest.update(f"{name}:{spec.sha256};".encode())
    return digest.hexdigest()
