"""Writes bundles so that a failure leaves what was there before."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Self

from retouch.bundle._bundle import MANIFEST_FILE, describe_file
from retouch.bundle._manifest import Manifest
from retouch.bundle._serde import manifest_to_json
from retouch.errors import BundleError


class BundleWriter:
    """A context manager: fill ``path``, then call ``finish``; otherwise nothing is left behind.

    The files are written into a sibling directory that takes the bundle's place at the end.
    """

    def __init__(self, target: str | os.PathLike[str]) -> None:
        self.target = Path(target).absolute()
        self._staging: Path | None = None

    @property
    def path(self) -> Path:
        """The directory to fill."""
        if self._staging is None:
            raise BundleError("The bundle writer is not open. Use it in a with statement.")
        return self._staging

    def __enter__(self) -> Self:
        if self.target.exists() and not (self.target / MANIFEST_FILE).is_file() and _occupied(self.target):
            raise BundleError(f"{self.target} exists and is not a bundle; it is not replaced. Choose another path.")
        try:
            self.target.parent.mkdir(parents=True, exist_ok=True)
            self._staging = Path(tempfile.mkdtemp(prefix=f".{self.target.name}.", dir=self.target.parent))
        except OSError as error:
            raise BundleError(f"The bundle cannot be written to {self.target}: {error}.") from error
        self._staging.chmod(0o755)
        return self

    def finish(self, manifest: Manifest) -> None:
        """Records the files in the manifest, writes it and puts the bundle in place."""
        files = {p.name: describe_file(p) for p in sorted(self.path.iterdir()) if p.name != MANIFEST_FILE}
        text = manifest_to_json(manifest.replace(files=files))
        (self.path / MANIFEST_FILE).write_text(text, encoding="utf-8")
        old = self.target.with_name(f"{self.path.name}.old")
        if self.target.exists():
            self.target.rename(old)
        self.path.rename(self.target)
        self._staging = None
        shutil.rmtree(old, ignore_errors=True)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._staging is not None:
            shutil.rmtree(self._staging, ignore_errors=True)
            self._staging = None
        if isinstance(error, OSError):
            raise BundleError(f"Writing the bundle {self.target} failed: {error}. Nothing was changed.") from error


def update_manifest(path: str | os.PathLike[str], manifest: Manifest) -> None:
    """Replaces the manifest of a bundle at one stroke; the files it lists must be unchanged."""
    target = Path(path) / MANIFEST_FILE
    try:
        handle, name = tempfile.mkstemp(prefix=f".{MANIFEST_FILE}.", dir=target.parent)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(manifest_to_json(manifest))
        staged = Path(name)
        staged.chmod(0o644)
        staged.replace(target)
    except OSError as error:
        raise BundleError(f"The manifest in {path} cannot be written: {error}. Make the bundle writable.") from error


def _occupied(path: Path) -> bool:
    return not path.is_dir() or any(path.iterdir())
