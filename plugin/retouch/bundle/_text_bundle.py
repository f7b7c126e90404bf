"""A text bundle on disk: a language model's graphs with keys and values in place, checked against their manifest."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from retouch.bundle._check import Check, check_files, directory_of
from retouch.bundle._text_manifest import TEXT_MANIFEST_FILE, TextManifest, read_text_manifest
from retouch.files import digest_of


@dataclass(frozen=True)
class TextBundle:
    """A text bundle: its directory and its manifest.

    ``decode.onnx`` takes ``ids``, ``positions`` and ``write_index`` [B, Q], ``valid`` [B], ``block`` [1], all int64,
    and ``keys.<layer>``, ``values.<layer>`` [B, kv_heads, S, head_dim], of B texts. It writes every token's keys and
    values to the row that ``write_index`` says (outputs ``keys.<layer>.next``, which a runtime binds to the same
    memory) and gives the tokens' ``logits`` [B, Q, vocabulary]. Of its text's first ``valid`` rows a token sees those
    of its own block of ``block`` tokens and of earlier ones. ``full.onnx`` is the same model without caches.
    """

    path: Path
    manifest: TextManifest

    @classmethod
    def open(cls, path: str | os.PathLike[str], check: Check = "hash") -> TextBundle:
        """The text bundle in a directory.

        Args:
            path: the directory.
            check: compare every file's SHA-256, only its size, or nothing with the manifest.

        Raises:
            BundleError: the directory is no text bundle, or a file is missing, truncated or changed.
        """
        directory = directory_of(path)
        manifest = read_text_manifest(directory)
        check_files({directory / name: spec for name, spec in manifest.files.items()}, check)
        return cls(directory, manifest)

    @property
    def decode_graph(self) -> Path:
        """The graph with keys and values in place."""
        return self.path / "decode.onnx"

    @property
    def full_graph(self) -> Path:
        """The graph without caches."""
        return self.path / "full.onnx"

    @cached_property
    def fingerprint(self) -> str:
        """A digest of the contents of all files."""
        return digest_of(self.manifest.files)


def is_text_bundle(path: str | os.PathLike[str]) -> bool:
    """Whether a directory holds a text bundle's manifest."""
    return (Path(path) / TEXT_MANIFEST_FILE).is_file()
