"""Writes bundles so that a failure leaves what was there before."""

from __future__ import annotations

import os
import re
from collections.abc import Set as AbstractSet
from pathlib import Path

from retouch.bundle._bundle import MANIFEST_FILE, check_names
from retouch.bundle._engine_files import foreign_engines
from retouch.bundle._engines import ENGINES_FOLDER
from retouch.bundle._manifest import Manifest
from retouch.bundle._serde import manifest_to_json
from retouch.bundle._staged_writer import StagedWriter
from retouch.errors import BundleError
from retouch.files import Kind, describe_file, replace_text

_FILES = re.compile(r"(manifest|shared)\.json|(weights|own)\.bin|base\.onnx|(edit|prep)(_\w+)?\.onnx")


def _is_bundle(names: AbstractSet[str]) -> bool:
    # Other programs have a manifest.json as well, and beside it perhaps the very model that is exported.
    return {MANIFEST_FILE, "base.onnx"} <= names and all(map(_FILES.fullmatch, names - {ENGINES_FOLDER}))


class BundleWriter(StagedWriter):
    """A context manager: fill ``path``, then call ``finish``; otherwise nothing is left behind.

    The files are written into a sibling directory that takes the bundle's place at the end.
    """

    _kind = Kind("a bundle", _is_bundle, BundleError, foreign_engines)

    def finish(self, manifest: Manifest) -> None:
        """Records the files in the manifest, writes it and puts the bundle in place.

        Raises:
            BundleError: a graph that the manifest names was not written, or something else has taken the place.
        """
        paths = sorted(path for path in self.path.rglob("*") if path.is_file())
        files = {path.relative_to(self.path).as_posix(): describe_file(path) for path in paths}
        complete = manifest.replace(files=files)
        check_names(complete, self._staged.target)
        (self.path / MANIFEST_FILE).write_text(manifest_to_json(complete), encoding="utf-8")
        self._staged.finish()


def update_manifest(path: str | os.PathLike[str], manifest: Manifest) -> None:
    """Replaces the manifest of a bundle at one stroke; the files it lists must be unchanged.

    Raises:
        BundleError: there is no bundle, or it cannot be written.
    """
    target = Path(path) / MANIFEST_FILE
    if not target.is_file():
        raise BundleError(f"{path} is not a bundle: it has no {MANIFEST_FILE}. Make one with `retouch export`.")
    try:
        replace_text(target, manifest_to_json(manifest))
    except OSError as error:
        raise BundleError(f"The manifest in {path} cannot be written: {error}. Make the bundle writable.") from error
