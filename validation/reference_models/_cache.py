"""The files of one exported reference model, as they lie in a cache directory that several processes share."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class CacheEntry:
    """The place of one export: graph, example feeds, perhaps external data, and a record of what they are.

    The record is written last. An entry counts as present only if the record names the wanted fingerprint and
    every file it lists has the recorded size, so an interrupted or truncated write is never taken for an export.
    """

    directory: Path
    stem: str

    @property
    def graph(self) -> Path:
        """Path of the ONNX file."""
        return self.directory / f"{self.stem}.onnx"

    @property
    def feeds(self) -> Path:
        """Path of the example feeds."""
        return self.directory / f"{self.stem}.feeds.npz"

    @property
    def lock(self) -> Path:
        """Path of the file that a writer locks."""
        return self.directory / f".{self.stem}.lock"

    @property
    def record(self) -> Path:
        """Path of the record."""
        return self.directory / f"{self.stem}.json"

    def holds(self, fingerprint: str) -> bool:
        """Whether the files of an export with this fingerprint are all there."""
        record = self._read_record()
        sizes = record.get("files")
        if record.get("fingerprint") != fingerprint or not isinstance(sizes, dict):
            return False
        return all(_size(self.directory / name) == size for name, size in sizes.items())

    @contextmanager
    def draft(self) -> Iterator[CacheEntry]:
        """An empty entry of the same stem in a directory of its own, which is removed at the end of the block."""
        with tempfile.TemporaryDirectory(prefix=f".{self.stem}-", dir=self.directory) as directory:
            yield CacheEntry(Path(directory), self.stem)

    def replace_by(self, draft: CacheEntry, fingerprint: str, about: Mapping[str, Any]) -> None:
        """Moves the files of a draft here and writes the record that makes them valid."""
        names = sorted(path.name for path in draft.directory.iterdir())
        sizes = {name: _size(draft.directory / name) for name in names}
        content = {"fingerprint": fingerprint, **about, "files": sizes}
        draft.record.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
        for name in (*names, draft.record.name):
            (draft.directory / name).replace(self.directory / name)

    def _read_record(self) -> dict[str, Any]:
        try:
            record = json.loads(self.record.read_text(encoding="utf-8"))
        except (FileNotFoundError, ValueError):
            return {}
        return record if isinstance(record, dict) else {}


def _size(path: Path) -> int | None:
    return path.stat().st_size if path.is_file() else None
