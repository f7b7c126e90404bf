"""Bundles of language models: graphs with keys and values in place, and what a runtime has to know of them."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from retouch.bundle._bundle import Check
from retouch.bundle._file_spec import FileSpec, check_file, describe_file
from retouch.errors import BundleError
from retouch.files import Kind, StagedDirectory, parse_json, read_dataclass

TEXT_MANIFEST_FILE = "text.json"
TEXT_SCHEMA_VERSION = 2

_FILES = {TEXT_MANIFEST_FILE, "decode.onnx", "full.onnx", "weights.bin"}


@dataclass(frozen=True)
class DecoderSpec:
    """The shape of a block-diffusion language model.

    Attributes:
        family: name of the model's family.
        vocabulary: number of token ids.
        mask_id: id of a token that is still to be chosen.
        eos_id: id that ends a text.
        block: tokens of a block.
        positions: longest text.
        hidden: width.
        layers: number of layers.
        heads: heads of the queries.
        kv_heads: heads of keys and values.
        head_dim: width of a head.
        intermediate: width inside the feed-forward part.
        rotary_dims: how many dims of a head are rotated.
        rope_theta: base of the rotary frequencies.
        norm_epsilon: added to the mean square in norms.
    """

    family: str
    vocabulary: int
    mask_id: int
    eos_id: int
    block: int
    positions: int
    hidden: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    intermediate: int
    rotary_dims: int
    rope_theta: float
    norm_epsilon: float

    def cache_shape(self, rows: int, texts: int = 1) -> tuple[int, int, int, int]:
        """The shape of the keys, and of the values, of one layer for so many tokens of each text."""
        return (texts, self.kv_heads, rows, self.head_dim)


@dataclass(frozen=True)
class SymbolsSpec:
    """A tokenizer whose ids are the places of symbols in a list.

    Attributes:
        symbols: the symbols; the end and the mask come behind them.
    """

    symbols: tuple[str, ...]


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
        directory = Path(path)
        manifest = _read(directory / TEXT_MANIFEST_FILE)
        if check != "none":
            for name, spec in manifest.files.items():
                check_file(directory / name, spec, hashed=check == "hash")
        return cls(directory, manifest)

    @property
    def decode_graph(self) -> Path:
        """The graph with keys and values in place."""
        return self.path / "decode.onnx"

    @property
    def full_graph(self) -> Path:
        """The graph without caches."""
        return self.path / "full.onnx"

    @property
    def fingerprint(self) -> str:
        """A digest of the contents of all files."""
        digest = hashlib.sha256()
        for name, spec in sorted(self.manifest.files.items()):
            digest.update(f"{name}:{spec.sha256};".encode())
        return digest.hexdigest()


class TextBundleWriter:
    """A context manager: fill ``path``, then call ``finish``; otherwise nothing is left behind."""

    def __init__(self, target: str | os.PathLike[str]) -> None:
        self._staged = StagedDirectory(target, _KIND)

    @property
    def path(self) -> Path:
        """The directory to fill."""
        return self._staged.path

    def __enter__(self) -> Self:
        self._staged.__enter__()
        return self

    def finish(self, manifest: TextManifest) -> TextBundle:
        """The bundle, in place, with its files recorded in the manifest."""
        files = {path.name: describe_file(path) for path in sorted(self.path.iterdir())}
        complete = dataclasses.replace(manifest, files=files)
        text = json.dumps(dataclasses.asdict(complete), indent=1, allow_nan=False)
        (self.path / TEXT_MANIFEST_FILE).write_text(f"{text}\n", encoding="utf-8")
        self._staged.finish()
        return TextBundle(self._staged.target, complete)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._staged.__exit__(kind, error, trace)


def is_text_bundle(path: str | os.PathLike[str]) -> bool:
    """Whether a directory holds a text bundle's manifest."""
    return (Path(path) / TEXT_MANIFEST_FILE).is_file()


def _recognised(names: AbstractSet[str]) -> bool:
    return TEXT_MANIFEST_FILE in names and names <= _FILES


_KIND = Kind("a text bundle", _recognised, BundleError)


def _read(path: Path) -> TextManifest:
    if not path.is_file():
        raise BundleError(
            f"{path.parent} is not a text bundle: it has no {path.name}. Make one with `retouch export` from the "
            "directory of a language model."
        )
    try:
        data = parse_json(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BundleError(f"{path} cannot be read ({error}). Export the model again.") from error
    version = data.get("schema_version") if isinstance(data, dict) else None
    if version != TEXT_SCHEMA_VERSION:
        raise BundleError(
            f"{path} has schema version {version!r}; this version of Retouch reads {TEXT_SCHEMA_VERSION}. "
            "Export the model again."
        )
    manifest = read_dataclass(data, TextManifest, str(path), _fault)
    if set(manifest.files) != _FILES - {TEXT_MANIFEST_FILE}:
        raise BundleError(f"{path} lists {', '.join(manifest.files)}, which is not what it needs. Export again.")
    return manifest


def _fault(message: str) -> Exception:
    return BundleError(f"{message} The manifest was changed: export the model again.")
