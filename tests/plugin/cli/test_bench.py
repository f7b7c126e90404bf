"""``retouch bench``."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from retouch.bundle import Bundle


def test_times(call: Any, image_bundle: Path, image_model: Path, tmp_path: Path) -> None:
    options = ("--areas", "0.1,1", "--box", "4x6+1", "--original", image_model, "--json", tmp_path / "bench.json")
    called = call("bench", image_bundle, *options)
    assert called.code == 0, called.stderr
    rows = json.loads((tmp_path / "bench.json").read_text())
    assert [row["case"] for row in rows] == ["10 %", "100 %", "4x6, dilation 1"]
    grid = Bundle.open(image_bundle).manifest.editable.grid
    assert [row["rows"][grid] for row in rows] == [25, 256, 48]
    for row in rows:
        assert {"area", "rows", "base_ms", "edit_ms", "ratio", "wall_ratio", "path", "flop_ratio"} <= row.keys()
        assert row["ratio"] == pytest.approx(row["edit_ms"] / row["base_ms"])
        assert row["base_ms"] == min(row["bundle_ms"], row["original_ms"]) > 0
        assert row["path"] == "edit"
    assert "4x6" in called.stdout


def test_json_on_standard_output_is_json_only(call: Any, hand_built: Any) -> None:
    called = call("bench", hand_built.bundle.path, "--areas", "0.25", "--json", "-")
    assert [row["area"] for row in called.json] == [0.25]
    assert "ratio" in called.stderr


def test_shorter_weights_need_kernels(call: Any, image_bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RETOUCH_ORT_EP_LIBRARY", "/nowhere/lib.so")
    called = call("bench", image_bundle, "--areas", "0.1", "--weights", "bfloat16")
    assert called.code == 1
    assert "Expected Retouch's kernels to keep weights as bfloat16" in called.error


def test_footprint(call: Any, image_bundle: Path, image_model: Path) -> None:
    called = call("bench", image_bundle, "--memory", "--original", image_model, "--json", "-")
    assert called.code == 0, called.stderr
    footprint = called.json
    assert footprint["stock_model"] == "original"
    assert footprint["original_bytes"] == image_model.stat().st_size
    files = sum(path.stat().st_size for path in image_bundle.iterdir())
    assert footprint["bundle_bytes"] == files > footprint["weights_bytes"]
    assert footprint["states_bytes"] == footprint["edit"]["states_bytes"] > 0 == footprint["stock"]["states_bytes"]
    for probe in (footprint["edit"], footprint["stock"]):
        assert probe["peak_bytes"] >= probe["rest_bytes"] >= probe["imports_bytes"] > 2**20
        assert probe["first_ms"] > probe["open_ms"] > 0
    assert "peak memory" in called.stderr


def test_footprint_without_an_engine(call: Any, image_bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    called = call("bench", image_bundle, "--memory")
    assert called.code == 1
    assert "error: EngineMissingError: Expected the package onnxruntime" in called.error
    assert "Traceback" not in called.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--areas", "0"], "above 0 and at most 1, the share of the positions, got 0"),
        (["--areas", "0.1,1.5"], "got 1.5"),
        (["--areas", "nan"], "got nan"),
        (["--areas", "5%"], "Expected --areas to be numbers like"),
        (["--areas", ""], "Expected --areas to be numbers like"),
        (["--box", "4"], "Expected a box with 2 sizes"),
        (["--box", "4x99"], "Expected a box with 2 sizes"),
        (["--box", "4x4+x"], "Expected --box HxW+D"),
        (["--repeats", "8"], "--repeats"),
        (["--policy", "best"], "Expected a region policy among"),
        (["--original", "absent.onnx"], "absent.onnx, which does not exist"),
        (["--memory", "--original", "absent.onnx"], "absent.onnx, which does not exist"),
    ],
)
def test_bad_options(call: Any, image_bundle: Path, options: list[str], message: str) -> None:
    called = call("bench", image_bundle, *options)
    assert called.code == 2
    assert message in called.error


def test_another_model_is_not_compared_with(call: Any, image_bundle: Path, image_model: Path, tmp_path: Path) -> None:
    shutil.copy(image_model, tmp_path / "other.onnx")
    with (tmp_path / "other.onnx").open("ab") as file:
        file.write(b"\x32\x00")
    called = call("bench", image_bundle, "--areas", "0.1", "--original", tmp_path / "other.onnx")
    assert called.code == 2
    assert "ModelError: Expected the model 'image' that the bundle was exported from" in called.error
