"""The manifest of a text bundle."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from retouch.bundle._clusters import ClustersSpec
from retouch.bundle._decoder_spec import DecoderSpec, SymbolsSpec
from retouch.errors import BundleError
from retouch.files import FileSpec, read_record_file, write_record_file

TEXT_MANIFEST_FILE = "text.json"
TEXT_SCHEMA_VERSION = 4

CLUSTERS_FILE = "clusters.json"
"""Written into a bundle that is there; decides nothing of what the model gives."""
_DECODE_FILE = "decode.onnx"
_FILES = frozenset({"full.onnx", "rows.onnx", "similar.onnx", "focus.onnx", "weights.bin"})

TEXT_FILES = _FILES | {_DECODE_FILE, CLUSTERS_FILE}
"""All files that a manifest may list."""


def needed_files(model: DecoderSpec) -> frozenset[str]:
    """The files that a manifest has to list: keys and values in place are for causal blocks."""
    return _FILES | {_DECODE_FILE} if model.block_causal else _FILES


@dataclass(frozen=True)
class TextManifest:
    """What a text bundle says of itself.

    Attributes:
        schema_version: version of this form.
        retouch_version: version of Retouch that wrote it.
        model: the model's shape.
        tokenizer: its tokenizer, if it came with one that Retouch has.
        verification: largest error of every check, relative to the largest logit.
        files: size and SHA-256 by name.
    """

    schema_version: int
    retouch_version: str
    model: DecoderSpec
    tokenizer: SymbolsSpec | None
    verification: Mapping[str, float]
    files: Mapping[str, FileSpec]


def read_text_manifest(directory: Path) -> TextManifest:
    """The manifest of the text bundle in a directory.

    Raises:
        BundleError: the directory is no text bundle, or its manifest was changed or has another schema version.
    """
    path = directory / TEXT_MANIFEST_FILE
    if not path.is_file():
        raise BundleError(
            f"{directory} is not a text bundle: it has no {path.name}. Make one with `retouch export` from the "
            "directory of a language model."
        )
    manifest = read_record_file(path, TextManifest, _fault, TEXT_SCHEMA_VERSION)
    needed = needed_files(manifest.model)
    if set(manifest.files) - {CLUSTERS_FILE} != needed:
        wanted, got = (", ".join(sorted(names)) for names in (needed, manifest.files))
        raise _fault(f"{path}: expected files to list {wanted}, got {got}.")
    return manifest


def write_text_manifest(directory: Path, manifest: TextManifest) -> None:
    """Writes the manifest of the text bundle in a directory, in one step."""
    write_record_file(directory / TEXT_MANIFEST_FILE, manifest)


def read_clusters(directory: Path) -> ClustersSpec:
    """The clusters of positions that lie in a directory.

    Raises:
        BundleError: their file was changed.
    """
    return read_record_file(directory / CLUSTERS_FILE, ClustersSpec, _fault)


def _fault(message: str) -> BundleError:
    return BundleError(f"{message} The manifest was changed, or another version of Retouch wrote it: export again.")
