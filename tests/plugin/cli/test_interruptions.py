"""Asked to end, the command line leaves nothing behind and shows no traceback."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

WRITING = """
import sys, time
import retouch.cli._app as _app
from retouch.cli import main
from retouch.errors import BundleError
from retouch.files import Kind, StagedDirectory

def app():
    with StagedDirectory(sys.argv[1], Kind("a bundle", lambda names: True, BundleError)) as staged:
        (staged.path / "half").touch()
        print("writing", flush=True)
        time.sleep(60)

_app.app = app
main()
"""
IMPORTING = """
import sys

class Finder:
    def find_spec(self, name, path, target=None):
        if name == "numpy":
            raise KeyboardInterrupt

sys.meta_path.insert(0, Finder())
from retouch.cli import main
main()
"""


def test_a_request_to_end_removes_what_is_half_written(tmp_path: Path) -> None:
    command = [sys.executable, "-c", WRITING]
    with subprocess.Popen([*command, str(tmp_path / "b")], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"writing\n"
        assert len(list(tmp_path.iterdir())) == 1
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=30)
    assert process.returncode == 128 + signal.SIGTERM
    assert b"Traceback" not in errors
    assert list(tmp_path.iterdir()) == []


def test_an_interruption_of_the_imports() -> None:
    done = subprocess.run([sys.executable, "-c", IMPORTING], capture_output=True, text=True, check=False)
    assert done.returncode == 128 + signal.SIGINT
    assert done.stderr == "Interrupted.\n"
