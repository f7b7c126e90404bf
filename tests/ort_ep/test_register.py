from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import onnxruntime
import pytest

from retouch import EngineMissingError
from retouch.ort_ep import LIBRARY_VARIABLE, PROVIDER, library, register

TOO_OLD = tuple(map(int, onnxruntime.__version__.split(".")[:2])) < (1, 24)


def test_registering_from_many_threads_gives_the_same_answer() -> None:
    with ThreadPoolExecutor(8) as pool:
        answers = [job.result() for job in [pool.submit(register) for _ in range(32)]]
    assert {(bool(answer), answer.reason) for answer in answers} == {(bool(answers[0]), answers[0].reason)}
    assert bool(answers[0]) == (isinstance(library(), Path) and not TOO_OLD)


def test_a_library_named_by_the_environment_must_exist(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(LIBRARY_VARIABLE, "/nowhere/lib.so")
    answer = register()
    assert not answer
    assert answer.reason == f"{LIBRARY_VARIABLE} names '/nowhere/lib.so', which is no file"
    with pytest.raises(EngineMissingError, match=f"Expected {PROVIDER} to be available, but .*'/nowhere/lib.so'"):
        answer.required()


def test_a_file_that_is_no_library_is_a_reason_and_no_crash(tmp_path: Path) -> None:
    broken = tmp_path / "broken.so"
    broken.write_bytes(b"not a library")
    code = "from retouch.ort_ep import register; answer = register(); print(bool(answer), answer.reason)"
    done = subprocess.run(
        [sys.executable, "-c", code], env={LIBRARY_VARIABLE: str(broken)}, capture_output=True, text=True, check=True
    )
    reason = f"{onnxruntime.__version__} is older than 1.24" if TOO_OLD else f"could not load {broken}"
    assert done.stdout.startswith(f"False onnxruntime {reason}")


def test_a_runtime_that_takes_no_kernels_is_a_reason(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "lib.so").touch()
    monkeypatch.setenv(LIBRARY_VARIABLE, str(tmp_path / "lib.so"))
    monkeypatch.setattr("onnxruntime.__version__", "1.23.2")
    answer = register()
    assert not answer
    assert answer.reason == "onnxruntime 1.23.2 is older than 1.24"
