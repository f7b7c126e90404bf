"""``retouch validate``."""

from __future__ import annotations

import dataclasses
import json
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("polygraphy")

from retouch import EditSession
from retouch.validation.accuracy import _polygraphy

QUICK = ("--areas", "0.05", "--drift", "1", "--threads", "1")


def test_a_right_bundle(call: Any, image_bundle: Path, image_model: Path, tmp_path: Path) -> None:
    options = ("--original", image_model, "--report", tmp_path / "report", "--json", "-")
    called = call("validate", image_bundle, *QUICK, *options)
    assert called.code == 0, called.stderr
    assert called.json["passed"] and called.json["cases"][0]["name"] == "block 5 %"
    assert "identical" in called.stderr and "passed" in called.stderr
    assert (tmp_path / "report" / "report.html").is_file()


def test_a_wrong_one(call: Any, image_bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    original = EditSession.edit

    def edit(*arguments: Any, **named: Any) -> Any:
        result = original(*arguments, **named)
        return dataclasses.replace(result, outputs={n: v + np.float32(1e-3) for n, v in result.outputs.items()})

    monkeypatch.setattr(EditSession, "edit", edit)
    called = call("validate", image_bundle, *QUICK)
    assert called.code == 1
    assert "FAILED" in called.stdout and "off the oracle" in called.stdout and "CHANGED" in called.stdout


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--areas", "2"), "Expected --areas above 0 and at most 1"),
        (("--original", "none.onnx"), "which does not exist"),
        (("--feeds", "none.npz"), "readable .npz"),
        (("--policy", "best"), "Expected a region policy among"),
    ],
)
def test_bad_input(call: Any, image_bundle: Path, options: tuple[str, ...], message: str) -> None:
    called = call("validate", image_bundle, *options)
    assert called.code == 2
    assert message in called.error


def test_no_bundle(call: Any, tmp_path: Path) -> None:
    called = call("validate", tmp_path)
    assert called.code == 2 and "is not a bundle" in called.error


def test_without_polygraphy(call: Any, image_bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def version(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(_polygraphy, "version", version)
    called = call("validate", image_bundle)
    assert called.code == 1 and 'pip install "retouch[validate]"' in called.error
    monkeypatch.setattr(_polygraphy, "version", lambda _: "0.49.26")
    called = call("validate", image_bundle)
    assert called.code == 1 and 'got 0.49.26: pip install --upgrade "polygraphy>=0.53.6"' in called.error


def test_figures_are_json(call: Any, image_bundle: Path, tmp_path: Path) -> None:
    assert call("validate", image_bundle, *QUICK, "--json", tmp_path / "figures.json").code == 0
    kinds = [case["kind"] for case in json.loads((tmp_path / "figures.json").read_text())["cases"]]
    assert kinds.count("drift") == 1 and kinds.count("all rows") == 1
