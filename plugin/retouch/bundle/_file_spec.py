"""Size and hash of a file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from retouch.errors import BundleError
from retouch.files import sha256_of


@dataclass(frozen=True)
class FileSpec:
    """Size and SHA-256 of one file of the bundle."""

    bytes: int
    sha256: str


def describe_file(path: Path) -> FileSpec:
    """Size and SHA-256 of a file."""
    return FileSpec(path.stat().st_size, sha256_of(path))


def check_file(path: Path, spec: FileSpec, *, hashed: bool, remedy: str = "export again") -> None:
    """Checks a file against what a manifest says of it.

    Args:
        path: the file.
        spec: its size and hash.
        hashed: whether to compare its hash.
        remedy: what to do if it is not as described, beside copying it again.

    Raises:
        BundleError: it is missing, truncated or changed.
    """
    if not path.is_file():
        raise BundleError(f"The bundle lacks {path.name} ({path}). Copy the whole directory, or {remedy}.")
    size = path.stat().st_size
    if size != spec.bytes:
        raise BundleError(
            f"{path} has {size} bytes, but the manifest says {spec.bytes}: it was truncated or changed. "
            f"Copy it again, or {remedy}."
        )
    if hashed and sha256_of(path) != spec.sha256:
        raise BundleError(f"{path} was changed: its SHA-256 is not the manifest's. Copy it again, or {remedy}.")
