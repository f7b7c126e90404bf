"""Folders that killed processes left half filled go away; those of living ones stay."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from retouch.errors import BundleError
from retouch.files import Kind, StagedDirectory

KIND = Kind("a thing", lambda names: "thing" in names, BundleError)
KILLED = """
import os, signal, sys
from retouch.errors import BundleError
from retouch.files import Kind, StagedDirectory
staged = StagedDirectory(sys.argv[1], Kind("a thing", lambda names: True, BundleError)).__enter__()
(staged.path / "half").write_text("half")
os.kill(os.getpid(), signal.SIGKILL)
"""


def write(target: Path) -> None:
    with StagedDirectory(target, KIND) as staged:
        (staged.path / "thing").touch()
        staged.finish()


def test_the_next_write_removes_what_a_killed_process_left(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", KILLED, str(tmp_path / "target")], check=False)
    (left,) = tmp_path.iterdir()
    assert (left / "half").is_file() and left.suffix == ".partial"
    (tmp_path / ".retouch-notes.partial").mkdir()
    write(tmp_path / "other")
    assert sorted(path.name for path in tmp_path.iterdir()) == [".retouch-notes.partial", "other"]


def test_folders_that_are_being_filled_stay(tmp_path: Path) -> None:
    with StagedDirectory(tmp_path / "one", KIND) as staged:
        (staged.path / "thing").touch()
        write(tmp_path / "two")
        assert (staged.path / "thing").is_file()
        staged.finish()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one", "two"]


def test_the_folder_is_free_once_it_is_in_place(tmp_path: Path) -> None:
    write(tmp_path / "one")
    (tmp_path / "one").rename(tmp_path / ".retouch-01234567.partial")
    write(tmp_path / "two")
    assert [path.name for path in tmp_path.iterdir()] == ["two"]
