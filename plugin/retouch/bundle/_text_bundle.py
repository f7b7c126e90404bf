"""A text bundle on disk: a language model's graphs with keys and values in place, checked against their manifest."""

from __future__ import annotations

import dataclasses
import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

from retouch.bundle._check import Check, check_files, directory_of
from retouch.bundle._clusters import ClustersSpec
from retouch.bundle._text_manifest import (
    CLUSTERS_FILE,
    TEXT_MANIFEST_FILE,
    TextManifest,
    read_clusters,
    read_text_manifest,
    write_text_manifest,
)
from retouch.errors import BundleError
from retouch.files import describe_file, digest_of, write_record_file


@dataclass(frozen=True)
class TextBundle:
    """A text bundle: its directory and its manifest.

    ``decode.onnx`` takes ``ids``, ``positions`` and ``write_index`` [B, Q], ``valid`` [B], ``block`` [1], all int64,
    and ``keys.<layer>``, ``values.<layer>`` [B, kv_heads, S, head_dim], of B texts. It writes every token's keys and
    values to the row that ``write_index`` says (outputs ``keys.<layer>.next``, which a runtime binds to the same
    memory) and gives the tokens' ``logits`` [B, Q, vocabulary]. Of its text's first ``valid`` rows a token sees those
    of its own block of ``block`` tokens and of earlier ones. ``full.onnx`` is the same model without caches.

    The other graphs compute rows of one text in which all tokens see each other, over what was computed of the others.
    All take ``ids`` [1, N], per layer ``rows.<layer>`` [M], the rows whose logits are ``wanted`` [W], and the states
    ``keys.<layer>``, ``values.<layer>`` [1, kv_heads, N, head_dim] and ``added.<layer>`` [N, hidden], what the layer
    adds to every row; they give ``logits`` [1, W, vocabulary] and the states' ``.next``. ``similar.onnx`` computes in
    every layer also those ``count`` [1] of the ``candidates`` [C] whose values differ most from the kept ones, and
    gives them as ``picked.<layer>``. It and ``focus.onnx`` let rows see the rows of ``context`` [S] only; the latter
    keeps the share ``keep`` [1] of earlier values.
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
        """The graph with keys and values in place; only models whose blocks are causal have it."""
        return self.path / "decode.onnx"

    @property
    def full_graph(self) -> Path:
        """The graph without caches."""
        return self.path / "full.onnx"

    def rows_graph(self, kind: Literal["rows", "similar", "focus"]) -> Path:
        """A graph that computes chosen rows."""
        return self.path / f"{kind}.onnx"

    @property
    def clusters(self) -> ClustersSpec | None:
        """The clusters of positions, if they were found for this model.

        Raises:
            BundleError: their file was changed.
        """
        return read_clusters(self.path) if CLUSTERS_FILE in self.manifest.files else None

    def with_clusters(self, clusters: ClustersSpec) -> TextBundle:
        """The bundle with clusters of positions, written into its directory.

        Raises:
            BundleError: the directory cannot be written to.
        """
        try:
            return self._with_clusters(clusters)
        except OSError as error:
            raise BundleError(
                f"The clusters cannot be written to {self.path}: {error}. Make the bundle writable, or copy it."
            ) from error

    def _with_clusters(self, clusters: ClustersSpec) -> TextBundle:
        files = {name: spec for name, spec in self.manifest.files.items() if name != CLUSTERS_FILE}
        # An interruption from here on leaves a bundle without clusters, and none whose manifest lists others.
        write_text_manifest(self.path, dataclasses.replace(self.manifest, files=files))
        write_record_file(self.path / CLUSTERS_FILE, clusters)
        files[CLUSTERS_FILE] = describe_file(self.path / CLUSTERS_FILE)
        manifest = dataclasses.replace(self.manifest, files=files)
        write_text_manifest(self.path, manifest)
        return TextBundle(self.path, manifest)

    @cached_property
    def fingerprint(self) -> str:
        """A digest of the contents of all files that decide what the model gives."""
        return digest_of({name: spec for name, spec in self.manifest.files.items() if name != CLUSTERS_FILE})


def is_text_bundle(path: str | os.PathLike[str]) -> bool:
    """Whether a directory holds a text bundle's manifest."""
    return (Path(path) / TEXT_MANIFEST_FILE).is_file()
