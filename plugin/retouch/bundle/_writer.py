"""Writes bundles so that a failure leaves what was there before."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from pathlib import Path
from types import TracebackType
from typing import Self

from retouch.bundle._bundle import MANIFEST_FILE, check_names, describe_file
from retouch.bundle._manifest import Manifest
from retouch.bundle._serde import manifest_to_json
from retouch.errors import BundleError


class BundleWriter:
    """A context manager: fill ``path``, then call ``finish``; otherwise nothing is left behind.

    The files are written into a sibling directory that takes the bundle's place at the end.
    """

    def __init__(self, target: str | os.PathLike[str]) -> None:
        self.target = Path(target).resolve()  # a link keeps pointing at its place, and the sibling lies on that disk
        self._staging: Path | None = None
        self._new_parents: list[Path] = []

    @property
    def path(self) -> Path:
        """The directory to fill."""
        if self._staging is None:
            raise BundleError("The bundle writer is not open. Use it in a with statement.")
        return self._staging

    def __enter__(self) -> Self:
        _check_replaceable(self.target)
        parent = self.target.parent
        self._new_parents = [folder for folder in (parent, *parent.parents) if not folder.exists()]
        self._staging = parent / f".retouch-{secrets.token_hex(4)}.partial"
        try:
            self._staging.mkdir(parents=True)
        except OSError as error:
            self._discard()
            raise BundleError(
                f"The bundle cannot be written to {self.target}: {error}. Choose another path."
            ) from error
        return self

    def finish(self, manifest: Manifest) -> None:
        """Records the files in the manifest, writes it and puts the bundle in place.

        Raises:
            BundleError: a graph that the manifest names was not written, or something else has taken the place.
        """
        paths = sorted(path for path in self.path.rglob("*") if path.is_file())
        files = {path.relative_to(self.path).as_posix(): describe_file(path) for path in paths}
        complete = manifest.replace(files=files)
        check_names(complete, self.target)
        (self.path / MANIFEST_FILE).write_text(manifest_to_json(complete), encoding="utf-8")
        _check_replaceable(self.target)
        _move_into_place(self.path, self.target)
        self._staging = None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._staging is not None:
            self._discard()
        if isinstance(error, OSError):
            raise BundleError(f"Writing the bundle {self.target} failed: {error}. Nothing was changed.") from error

    def _discard(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)
        self._staging = None
        for folder in self._new_parents:
            with contextlib.suppress(OSError):  # somebody else uses it by now
                folder.rmdir()


def update_manifest(path: str | os.PathLike[str], manifest: Manifest) -> None:
    """Replaces the manifest of a bundle at one stroke; the files it lists must be unchanged.

    Raises:
        BundleError: there is no bundle, or it cannot be written.
    """
    target = Path(path) / MANIFEST_FILE
    if not target.is_file():
        raise BundleError(f"{path} is not a bundle: it has no {MANIFEST_FILE}. Make one with `retouch export`.")
    text = manifest_to_json(manifest)
    staged = target.with_name(f".{MANIFEST_FILE}.{secrets.token_hex(4)}")
    try:
        with staged.open("x", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())  # or a power cut may leave an empty manifest under the right name
        staged.replace(target)
    except BaseException as error:
        with contextlib.suppress(OSError):
            staged.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise BundleError(
                f"The manifest in {path} cannot be written: {error}. Make the bundle writable."
            ) from error
        raise


def _move_into_place(new: Path, target: Path) -> None:
    """Puts ``new`` where ``target`` is; if that fails, the old one comes back."""
    if not target.exists():
        new.rename(target)
        return
    old = new.with_suffix(".old")
    target.rename(old)
    try:
        new.rename(target)
    except BaseException:
        old.rename(target)
        raise
    shutil.rmtree(old, ignore_errors=True)


def _check_replaceable(path: Path) -> None:
    """Refuses to replace what is not a bundle: an export must not delete somebody's folder."""
    if not path.exists():
        return
    names = {entry.name for entry in path.iterdir()} if path.is_dir() else {path.name}
    # Other programs have a manifest.json as well.
    is_bundle = MANIFEST_FILE in names and any(name.endswith(".onnx") for name in names)
    if names and not is_bundle:
        raise BundleError(
            f"{path} exists and is not a bundle; it is not replaced. Choose another path, or remove it first."
        )
