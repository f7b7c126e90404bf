"""A bundle on disk, checked against its manifest."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from retouch.bundle._manifest import FileSpec, Manifest
from retouch.bundle._serde import manifest_from_json
from retouch.errors import BundleError

MANIFEST_FILE = "manifest.json"


@dataclass(frozen=True)
class Bundle:
    """A bundle: its directory and its manifest."""

    path: Path
    manifest: Manifest

    @classmethod
    def open(cls, path: str | os.PathLike[str], check: Literal["hash", "size", "none"] = "hash") -> Bundle:
        """The bundle in a directory.

        Args:
            path: the directory.
            check: compare every file's SHA-256, only its size, or nothing with the manifest.

        Raises:
            BundleError: the directory is no bundle, or a file is missing, truncated or changed.
        """
        path = Path(path)
        manifest_path = path / MANIFEST_FILE
        if not manifest_path.is_file():
            raise BundleError(f"{path} is not a bundle: it has no {MANIFEST_FILE}. Make one with `retouch export`.")
        manifest = manifest_from_json(manifest_path.read_text(encoding="utf-8"), str(manifest_path))
        if check != "none":
            for name, spec in manifest.files.items():
                _check_file(path / name, spec, hashed=check == "hash")
        return cls(path, manifest)

    def file(self, name: str) -> Path:
        """The path of a file of the bundle."""
        return self.path / name

    @property
    def fingerprint(self) -> str:
        """A digest of the contents of all files: equal for equal models and exports, wherever they lie."""
        digest = hashlib.sha256()
        for name in sorted(self.manifest.files):
            digest.update(f"{name}:{self.manifest.files[name].sha256};".encode())
        return digest.hexdigest()


def describe_file(path: Path) -> FileSpec:
    """Size and SHA-256 of a file."""
    with path.open("rb") as file:
        return FileSpec(path.stat().st_size, hashlib.file_digest(file, "sha256").hexdigest())


def _check_file(path: Path, spec: FileSpec, *, hashed: bool) -> None:
    if not path.is_file():
        raise BundleError(f"The bundle lacks {path.name} ({path}). Copy the whole directory, or export again.")
    size = path.stat().st_size
    if size != spec.bytes:
        raise BundleError(
            f"{path} has {size} bytes, but the manifest says {spec.bytes}: it was truncated or changed. "
            "Copy it again, or export again."
        )
    if hashed and describe_file(path).sha256 != spec.sha256:
        raise BundleError(f"{path} was changed: its SHA-256 is not the manifest's. Copy it again, or export again.")
