"""The weights in a bundle's file, found by content, so that other graphs refer to them."""

from __future__ import annotations

import hashlib
import mmap
import os
from dataclasses import dataclass
from pathlib import Path

import onnx

from retouch.bundle import Bundle, SharedSpec, read_shared
from retouch.errors import ExportError
from retouch.files import sha256_of

__all__ = ["Digest", "SharedWeights", "digest_of"]

Digest = tuple[int, bytes]


def digest_of(data: bytes | memoryview) -> Digest:
    """Size and SHA-256 of a tensor's contents."""
    return len(data), hashlib.sha256(data).digest()


@dataclass(frozen=True)
class SharedWeights:
    """Places in a weights file.

    Attributes:
        file: the file.
        base: the folder to which the location in graphs is relative.
        location: what graphs call the file.
        places: offset by size and digest.
    """

    file: Path
    base: Path
    location: str
    places: dict[Digest, int]

    @classmethod
    def of(cls, bundle: Bundle, base: Path | None = None) -> SharedWeights:
        """The weights of a bundle, for graphs that refer to them from a folder above, or from a bundle of their own."""
        name = bundle.manifest.weights_file
        file = bundle.path / name
        base = base or bundle.path
        return cls(file, base, file.relative_to(base).as_posix(), _digests(file, _places(bundle, name)))

    @classmethod
    def of_partner(cls, path: str | os.PathLike[str]) -> SharedWeights:
        """The weights of another bundle that a new one is to share.

        Raises:
            BundleError: there is no bundle, or it was changed.
            ExportError: it shares the weights of a third one.
        """
        bundle = Bundle.open(path)
        third = read_shared(bundle.path)
        if third is not None:
            raise ExportError(
                f"Expected a bundle with weights of its own to share, but {path} shares those of "
                f"{(bundle.path / third.path).parent.resolve()}. Share that one."
            )
        return cls.of(bundle)

    def spec(self, reader: Path) -> SharedSpec:
        """The file as a bundle in another directory refers to it."""
        path = Path(os.path.relpath(self.file.resolve(), reader.resolve()))  # noqa: TID251 (no way up before 3.12)
        return SharedSpec(path.as_posix(), self.file.stat().st_size, sha256_of(self.file))


def _places(bundle: Bundle, name: str) -> set[tuple[int, int]]:
    """Offset and length of every tensor that a bundle's graphs read from its weights file."""
    found = set()
    for file in bundle.manifest.files:
        if not file.endswith(".onnx"):
            continue
        for tensor in onnx.load(bundle.path / file, load_external_data=False).graph.initializer:
            entries = {entry.key: entry.value for entry in tensor.external_data}
            if entries.get("location") == name:
                found.add((int(entries["offset"]), int(entries["length"])))
    return found


def _digests(file: Path, places: set[tuple[int, int]]) -> dict[Digest, int]:
    if not places:
        return {}
    with file.open("rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as data:
        return {digest_of(data[offset : offset + length]): offset for offset, length in sorted(places)}
