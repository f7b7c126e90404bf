"""``retouch doctor``, and what all commands have in common."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import onnxruntime
import pytest

from retouch import __version__
from retouch.cli import _doctor
from retouch.ort_ep import LIBRARY_VARIABLE

# What makes a package impossible to import, in a process of its own.
WITHOUT = "import sys; sys.modules[{name!r}] = None; from retouch.cli import main; sys.argv[0] = 'retouch'; main()"


def test_doctor_lists_what_is_there(call: Any) -> None:
    called = call("doctor", "--json", "-")
    assert called.code == 0
    assert called.json["retouch"] == __version__
    assert called.json["packages"]["onnxruntime"] == onnxruntime.__version__
    assert "CPUExecutionProvider" in called.json["providers"]
    assert set(called.json["missing"]) == {name for name, version in called.json["packages"].items() if version is None}
    assert "onnxruntime.cpu" in called.stderr


def test_extras_are_named_with_their_brackets(call: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    absent = _doctor._Package("absent_package", "nothing", 'pip install "retouch[x]"')
    monkeypatch.setattr(_doctor, "_PACKAGES", (_doctor._PACKAGES[0], absent))
    called = call("doctor")
    assert called.code == 0
    assert '"retouch[x]"' in called.stdout


def test_a_machine_without_onnxruntime(hand_built: Any, tmp_path: Any) -> None:
    def run(*arguments: object) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", WITHOUT.format(name="onnxruntime"), *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    doctor = run("doctor", "--json", "-")
    assert doctor.returncode == 1
    assert '"onnxruntime": null' in doctor.stdout
    assert "The installed onnxruntime" not in doctor.stdout + doctor.stderr
    made = run("run", hand_built.bundle.path, "-i", "x=0", "-i", "sigma=1", "-o", tmp_path / "run")
    assert made.returncode == 1
    assert "EngineMissingError" in made.stderr and '"retouch[cpu]"' in made.stderr
    assert "Traceback" not in made.stderr


@pytest.mark.parametrize("command", ["export", "run", "edit", "bench", "inspect", "doctor"])
def test_every_command_has_help(call: Any, command: str) -> None:
    assert command in call("--help").stdout
    called = call(command, "--help")
    assert called.code == 0
    assert "Usage" in called.stdout


def test_says_why_there_are_no_kernels(call: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(LIBRARY_VARIABLE, "/nowhere/lib.so")
    told = call("doctor", "--json", "-").json["kernels"]
    assert told == f"none, {LIBRARY_VARIABLE} names '/nowhere/lib.so', which is no file; bundles run on the stock ones"
