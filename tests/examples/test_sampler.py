"""The examples run as they are written, and differ where they say."""

from __future__ import annotations

import difflib
import runpy
import sys
from pathlib import Path

import numpy as np
import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(EXAMPLES)

    def start(name: str, *arguments: object) -> None:
        monkeypatch.setattr(sys, "argv", [name, *map(str, arguments)])
        runpy.run_path(str(EXAMPLES / name), run_name="__main__")

    return start


def test_the_sampler_before_and_after(run, tmp_path, capsys) -> None:
    model = tmp_path / "model.onnx"
    run("make_model.py", model)
    run("sampler_before.py", model, tmp_path / "before.npy")
    run("sampler_after.py", model, tmp_path / "after.npy")
    assert (tmp_path / "before.npy").read_bytes() == (tmp_path / "after.npy").read_bytes()
    assert np.load(tmp_path / "after.npy").shape == (1, 4, 32, 32)
    run("edit_sampler.py", model)
    said = capsys.readouterr().out
    assert "10 calls" in said and "path         edit" in said
    # Rows 5 to 9 of 32 are edited, and four around them by the policy `balanced`: 13 x 13.
    assert f"changed: {13 * 13 / 1024:.1%}" in said


def test_one_line_of_the_application_differs() -> None:
    before, after = ((EXAMPLES / f"sampler_{name}.py").read_text().splitlines() for name in ("before", "after"))
    changed = [line for line in difflib.ndiff(before, after) if line.startswith("+ ")]
    assert [line for line in changed if '"""' not in line] == ["+ import retouch as runtime"]
