"""Who holds a file or a folder has it alone, and lets go when it ends, however it ends."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from retouch.files import exclusive, linked_copy
from retouch.files._claim import Claim, remove_abandoned

HOLDING = """
import sys
from pathlib import Path
from retouch.files import exclusive

with exclusive(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.mark.parametrize("killed", [False, True])
def test_another_process_is_waited_for_until_it_ends(tmp_path: Path, killed: bool) -> None:
    command = [sys.executable, "-c", HOLDING, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None and process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        with exclusive(tmp_path, process.kill if killed else process.stdin.close):
            assert process.wait(30) == (-9 if killed else 0)


def test_threads_take_turns_and_nobody_waits_for_nothing(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("x")
    file.chmod(0o400)
    said: list[str] = []
    inside, done = threading.Event(), threading.Event()

    def hold() -> None:
        with exclusive(file, lambda: said.append("waiting")):
            inside.set()
            done.wait(30)
            said.append("first")

    thread = threading.Thread(target=hold)
    thread.start()
    assert inside.wait(30)

    def waiting() -> None:
        done.set()

    with exclusive(file, waiting):
        said.append("second")
    thread.join()
    assert said == ["first", "second"]


def test_a_folder_stays_under_its_second_name_while_the_first_is_replaced(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    (folder / "below").mkdir(parents=True)
    (folder / "below" / "file").write_text("old")
    with linked_copy(folder) as copy:
        assert copy is not None and copy.name == "folder"
        assert (copy / "below" / "file").samefile(folder / "below" / "file")
        (folder / "below" / "file").unlink()
        (folder / "below").rmdir()
        remove_abandoned(tmp_path)
        assert (copy / "below" / "file").read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]
    Claim(tmp_path).release()  # as a killed process leaves one
    with linked_copy(folder):
        assert len(list(tmp_path.iterdir())) == 2


def test_where_nothing_can_be_linked_there_is_no_copy(tmp_path: Path) -> None:
    with linked_copy(tmp_path / "none") as copy:
        assert copy is None
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "file").write_text("")
    with linked_copy(tmp_path / "file" / "below") as copy:
        assert copy is None
