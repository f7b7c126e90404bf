"""Records in JSON files, and paths in them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

import pytest

from retouch.errors import BundleError
from retouch.files import path_from, read_record_file, relative_path, write_record_file


class Colour(Enum):
    RED = "red"


@dataclass(frozen=True)
class Part:
    sizes: tuple[int, ...]
    colour: Colour


@dataclass(frozen=True)
class Record:
    name: str
    share: float
    parts: Mapping[str, Part]
    last: Part | None


def test_what_was_written_is_read(tmp_path: Path) -> None:
    record = Record("größer", 0.5, {"one": Part((1, 2), Colour.RED)}, None)
    write_record_file(tmp_path / "record.json", record)
    assert read_record_file(tmp_path / "record.json", Record, BundleError) == record
    assert "größer" in (tmp_path / "record.json").read_text(encoding="utf-8")
    assert [path.name for path in tmp_path.iterdir()] == ["record.json"]


def test_numbers_that_json_does_not_have_leave_what_was_there(tmp_path: Path) -> None:
    write_record_file(tmp_path / "record.json", Record("first", 1.0, {}, None))
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_record_file(tmp_path / "record.json", Record("second", float("nan"), {}, None))
    assert read_record_file(tmp_path / "record.json", Record, BundleError).name == "first"


def test_a_path_leads_back_through_links(tmp_path: Path) -> None:
    real = tmp_path / "real" / "run"
    real.mkdir(parents=True)
    (tmp_path / "link").symlink_to(real)
    relative = relative_path(tmp_path / "models" / "bundle", real)
    assert relative == "../../models/bundle"
    assert path_from(real, relative) == path_from(tmp_path / "link", relative) == tmp_path / "models" / "bundle"
