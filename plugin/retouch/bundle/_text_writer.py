"""Writes text bundles so that a failure leaves what was there before."""

from __future__ import annotations

import dataclasses
from collections.abc import Set as AbstractSet

from retouch.bundle._staged_writer import StagedWriter
from retouch.bundle._text_bundle import TextBundle
from retouch.bundle._text_manifest import (
    TEXT_FILES,
    TEXT_MANIFEST_FILE,
    TextManifest,
    needed_files,
    write_text_manifest,
)
from retouch.errors import BundleError
from retouch.files import Kind, describe_file


def _is_text_bundle(names: AbstractSet[str]) -> bool:
    return TEXT_MANIFEST_FILE in names and names <= TEXT_FILES | {TEXT_MANIFEST_FILE}


class TextBundleWriter(StagedWriter):
    """A context manager: fill ``path``, then call ``finish``; otherwise nothing is left behind."""

    _kind = Kind("a text bundle", _is_text_bundle, BundleError)

    def finish(self, manifest: TextManifest) -> TextBundle:
        """The bundle, in place, with its files recorded in the manifest.

        Raises:
            BundleError: a file was not written, or something else has taken the place.
        """
        needed = sorted(needed_files(manifest.model))
        missing = [name for name in needed if not (self.path / name).is_file()]
        if missing:
            raise BundleError(f"Expected {', '.join(missing)} in {self.path}, got nothing. Write all files first.")
        files = {name: describe_file(self.path / name) for name in needed}
        complete = dataclasses.replace(manifest, files=files)
        write_text_manifest(self.path, complete)
        self._staged.finish()
        return TextBundle(self._staged.target, complete)
