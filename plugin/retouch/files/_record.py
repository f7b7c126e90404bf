"""A JSON file of one form and schema version."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from retouch.files._json import parse_json, read_dataclass

T = TypeVar("T")


def read_record_file(path: Path, kind: type[T], fault: Callable[[str], Exception], version: int | None = None) -> T:
    """The dataclass that a JSON file holds.

    Args:
        path: the file.
        kind: the dataclass.
        fault: makes the exception to raise from a message that says what was expected and what was got.
        version: what its member ``schema_version`` has to be; ``None`` if it has none.
    """
    try:
        data = parse_json(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise fault(f"Expected {path} to be readable JSON, got: {error}.") from error
    found = data.get("schema_version") if isinstance(data, dict) else None
    if version is not None and (found != version or isinstance(found, bool)):
        raise fault(f"Expected {path} to have schema version {version}, got {found!r}.")
    return read_dataclass(data, kind, str(path), fault)
