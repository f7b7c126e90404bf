"""The files of a bundle: what is recorded of them, and whether they still are what was recorded."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

from retouch.bundle._json_layout import layout
from retouch.bundle._manifest import FileSpec, Manifest
from retouch.bundle._serde import manifest_from_json, manifest_to_json
from retouch.errors import BundleError

MANIFEST_FILE = "manifest.json"

_ADVICE = "export the model again (retouch export), or copy the bundle again if it was copied"


def describe_file(path: Path) -> FileSpec:
    """Size and SHA-256 of the file."""
    with path.open("rb") as stream:
        return FileSpec(bytes=path.stat().st_size, sha256=hashlib.file_digest(stream, "sha256").hexdigest())


def check_sizes(directory: Path, files: Mapping[str, FileSpec]) -> None:
    """Checks that every file is there and has its recorded size.

    Raises:
        BundleError: names the first that is missing or has another size.
    """
    for name, spec in files.items():
        path = directory / name
        if not path.is_file():
            raise BundleError(f"{path} is missing from the bundle: {_ADVICE}.")
        size = path.stat().st_size
        if size != spec.bytes:
            change = "was truncated" if size < spec.bytes else "has grown"
            raise BundleError(f"{path} {change}: expected {spec.bytes:,} bytes, got {size:,}; {_ADVICE}.")


def check_hashes(directory: Path, files: Mapping[str, FileSpec]) -> None:
    """Checks that every file has its recorded SHA-256.

    Raises:
        BundleError: names the first that was changed.
    """
    for name, spec in files.items():
        got = describe_file(directory / name).sha256
        if got != spec.sha256:
            raise BundleError(
                f"{directory / name} was changed since the export: expected SHA-256 {spec.sha256[:16]}..., "
                f"got {got[:16]}...; {_ADVICE}."
            )


def read_manifest(directory: Path) -> Manifest:
    """The manifest of the bundle in the directory.

    Raises:
        BundleError: there is none, it is not JSON, or it is not a manifest of this schema.
    """
    path = directory / MANIFEST_FILE
    try:
        data = json.loads(path.read_bytes())
    except FileNotFoundError as error:
        raise BundleError(f"{directory} is not a bundle, it has no {MANIFEST_FILE}: {_ADVICE}.") from error
    except OSError as error:
        raise BundleError(f"{path} cannot be read ({error.strerror}): check the permissions of the bundle.") from error
    except ValueError as error:
        raise BundleError(f"{path} is not valid JSON ({error}), so it was changed or truncated: {_ADVICE}.") from error
    try:
        manifest = manifest_from_json(data)
    except BundleError as error:
        raise BundleError(f"{path}: {error}") from error
    _check_names(path, manifest)
    return manifest


def manifest_text(manifest: Manifest) -> str:
    """The manifest as it stands in its file."""
    return layout(manifest_to_json(manifest)) + "\n"


def _check_names(path: Path, manifest: Manifest) -> None:
    """Refuses names that lead out of the bundle, and graphs whose hash is not recorded."""
    for name in manifest.files:
        if Path(name).is_absolute() or ".." in Path(name).parts:
            raise BundleError(f"{path} lists the file {name!r}, which lies outside of the bundle: {_ADVICE}.")
    edits = manifest.edits.values()
    wanted = {manifest.base_file, *(edit.file for edit in edits), *(edit.prep_file for edit in edits if edit.prep_file)}
    unlisted = sorted(wanted - set(manifest.files))
    if unlisted:
        raise BundleError(f"{path} lists no size and hash for {', '.join(unlisted)}: {_ADVICE}.")
