"""The manifest of a text bundle."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from retouch.bundle._decoder_spec import DecoderSpec, SymbolsSpec
from retouch.errors import BundleError
from retouch.files import FileSpec, read_record_file

TEXT_MANIFEST_FILE = "text.json"
TEXT_SCHEMA_VERSION = 2

TEXT_FILES = frozenset({"decode.onnx", "full.onnx", "weights.bin"})
"""The files that a manifest lists."""


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
    if set(manifest.files) != TEXT_FILES:
        wanted, got = (", ".join(sorted(names)) for names in (TEXT_FILES, manifest.files))
        raise _fault(f"{path}: expected files to list {wanted}, got {got}.")
    return manifest


def _fault(message: str) -> BundleError:
    return BundleError(f"{message} The manifest was changed, or another version of Retouch wrote it: export again.")
