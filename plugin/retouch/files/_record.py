"""Dataclasses in JSON files, of one form and schema version each."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from retouch.files._file import replace_text
from retouch.files._json import parse_json, read_dataclass

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

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


def write_record_file(path: Path, record: DataclassInstance) -> None:
    """Writes a dataclass into a JSON file in one step, enums by their values, so that it can be read again.

    Raises:
        OSError: it cannot be written.
    """
    text = json.dumps(dataclasses.asdict(record), indent=1, ensure_ascii=False, allow_nan=False, default=_enum_value)
    replace_text(path, f"{text}\n")


def _enum_value(value: object) -> object:
    assert isinstance(value, Enum)
    return value.value
