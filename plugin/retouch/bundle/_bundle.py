"""A bundle on disk, checked against its manifest."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from retouch.bundle._check import Check, check_files, damaged, directory_of
from retouch.bundle._engines import EngineSpec
from retouch.bundle._manifest import Manifest
from retouch.bundle._references import check_references
from retouch.bundle._serde import manifest_from_json
from retouch.bundle._shared import read_shared, shared_path
from retouch.bundle._text_manifest import TEXT_MANIFEST_FILE
from retouch.errors import BundleError
from retouch.files import FileSpec, check_file, digest_of

MANIFEST_FILE = "manifest.json"


@dataclass(frozen=True)
class Bundle:
    """A bundle: its directory and its manifest.

    Attributes:
        path: the directory.
        manifest: the manifest.
        batch: the batch that the manifest is for, if it is another one than that of the graphs (``at_batch``).
    """

    path: Path
    manifest: Manifest
    batch: int | None = None

    @classmethod
    def open(cls, path: str | os.PathLike[str], check: Check = "hash") -> Bundle:
        """The bundle in a directory.

        Args:
            path: the directory.
            check: compare every file's SHA-256, only its size, or nothing with the manifest.

        Raises:
            BundleError: the directory is no bundle, or a file is missing, truncated or changed.
        """
        directory = directory_of(path)
        manifest = _read_manifest(directory)
        check_files({directory / name: spec for name, spec in manifest.files.items()}, check)
        shared = read_shared(directory)
        if shared is not None:
            check_files({shared_path(directory, shared): FileSpec(shared.bytes, shared.sha256)}, check)
        return cls(directory, manifest)

    def file(self, name: str) -> Path:
        """The path of a file of the bundle.

        Raises:
            BundleError: the manifest does not list it.
        """
        if name not in self.manifest.files:
            raise BundleError(f"{self.path} has no file {name!r}. It has {', '.join(self.manifest.files)}.")
        return self.path / name

    def engine(self, name: str) -> tuple[Path, EngineSpec]:
        """The path of an engine that was built from the bundle, and what the manifest says of it.

        Raises:
            BundleError: the manifest does not list it, or the file is missing, truncated or changed.
        """
        spec = self.manifest.engines.get(name)
        if spec is None:
            known = ", ".join(self.manifest.engines) or "none"
            raise BundleError(f"{self.path} has no engine {name!r}. It has {known}. Build one with `retouch build`.")
        check_file(self.path / name, spec.file, damaged("build it again with `retouch build`"))
        return self.path / name, spec

    @cached_property
    def fingerprint(self) -> str:
        """A digest of the contents of all files: equal for equal models and exports, wherever they lie.

        Engines do not count: they compute what the graphs say.
        """
        return digest_of(self.manifest.files)


def check_names(manifest: Manifest, where: Path) -> None:
    """Checks that the listed files lie in the bundle, and that what the manifest names is there.

    Raises:
        BundleError: names what is wrong.
    """
    for name in (*manifest.files, *manifest.engines):
        if Path(name).is_absolute() or ".." in Path(name).parts:
            raise BundleError(f"{where} lists {name!r}, which is outside of the bundle. Export the model again.")
    check_references(manifest, where)


def _read_manifest(directory: Path) -> Manifest:
    path = directory / MANIFEST_FILE
    if directory.is_file():
        raise BundleError(f"{directory} is a file, a bundle is a directory. Make one with `retouch export`.")
    if (directory / TEXT_MANIFEST_FILE).is_file():
        raise BundleError(
            f"{directory} is the bundle of a language model, which `retouch text` and TextSession take. Expected the "
            "bundle of another model, or of a text model's edits (export_text_edits)."
        )
    if not path.is_file():
        raise BundleError(f"{directory} is not a bundle: it has no {MANIFEST_FILE}. Make one with `retouch export`.")
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise BundleError(f"{path} is not text ({error}): it was changed. Export the model again.") from error
    except OSError as error:
        raise BundleError(f"{path} cannot be read: {error}. Check its permissions.") from error
    manifest = manifest_from_json(text, str(path))
    check_names(manifest, path)
    return manifest
