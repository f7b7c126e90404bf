"""``retouch export`` and ``retouch inspect``."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from retouch.bundle import Bundle
from retouch.engines.ort import OrtEngine


def test_export_calibrates_and_sums_up(call: Any, image_model: Path, tmp_path: Path) -> None:
    called = call("export", image_model, "-o", tmp_path / "b", "--threads", 1)
    assert called.code == 0
    manifest = Bundle.open(tmp_path / "b").manifest
    measured = manifest.break_even[OrtEngine().name]
    assert measured.threads == 1 and len(measured.points) >= 2
    kept = ("verified weights.float16", "verified weights.bfloat16") if OrtEngine().kernels else ()
    for text in ("coverage", "size", "verified all_rows", "break-even", *kept):
        assert text in called.stdout
    for step in ("load", "verify cached: identity", "calibrate: 66% of the FLOPs"):
        assert step in called.stderr
    inspected = call("inspect", tmp_path / "b", "--json").json
    assert inspected["break_even"][OrtEngine().name]["flop_ratio"] == measured.flop_ratio
    assert inspected["coverage"] == manifest.coverage
    assert [spec["name"] for spec in inspected["inputs"]] == ["x", "step"]


def test_export_without_calibration(call: Any, image_bundle: Path) -> None:
    assert Bundle.open(image_bundle).manifest.break_even == {}
    called = call("inspect", image_bundle)
    assert "break-even: not measured" in called.stdout
    assert "[1, 3, 16, 16]" in called.stdout


def test_example_feeds_are_calibrated_with(call: Any, image_model: Path, tmp_path: Path) -> None:
    np.savez(tmp_path / "feeds.npz", step=np.array([3]))
    called = call("export", image_model, "-o", tmp_path / "b", "--example", tmp_path / "feeds.npz")
    assert called.code == 0
    for wrong, message in (
        ({"step": np.array([3.5])}, "Expected 'step' in"),
        ({"x": np.zeros((3, 16, 16), np.float32)}, "to have the shape (1, 3, 16, 16), got (3, 16, 16)"),
        ({"other": np.zeros(1)}, "to hold arrays among 'x', 'step', got 'other'"),
    ):
        np.savez(tmp_path / "wrong.npz", **wrong)
        called = call("export", image_model, "-o", tmp_path / "c", "--example", tmp_path / "wrong.npz")
        assert called.code == 2
        assert message in called.error


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--axes", "2,x"], "Expected --axes to be a list of axes, got '2,x'"),
        (["--fix", "batch"], "Expected --fix NAME=SIZE, got 'batch'"),
        (["--fix", "batch=0"], "got 'batch=0'; SIZE is an integer of at least 1"),
        (["--example", "absent.npz"], "absent.npz to be a readable .npz file"),
        (["--input", "z"], "ExportError"),
    ],
)
def test_bad_options(call: Any, image_model: Path, tmp_path: Path, options: list[str], message: str) -> None:
    called = call("export", image_model, "-o", tmp_path / "b", *options)
    assert called.code == 2
    assert message in called.error
    assert not (tmp_path / "b").exists()


def test_a_file_that_is_no_model(tmp_path: Path) -> None:
    """As a process of its own: nothing but the message is printed."""
    (tmp_path / "text.onnx").write_text("not a model")
    command = [sys.executable, "-c", "from retouch.cli import main; main()"]
    done = subprocess.run(
        [*command, "export", tmp_path / "text.onnx", "-o", tmp_path / "b"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert done.stdout == ""
    assert "error: ModelError:" in done.stderr and "Traceback" not in done.stderr


def test_a_folder_that_is_no_bundle_is_kept(call: Any, image_model: Path, tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").touch()
    called = call("export", image_model, "-o", tmp_path)
    assert called.code == 2
    assert "is not a bundle; it is not replaced" in called.error
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_inspect_of_no_bundle(call: Any, tmp_path: Path) -> None:
    called = call("inspect", tmp_path)
    assert called.code == 2
    assert "is not a bundle" in called.error


FOREIGN = """
<ir_version: 10, opset_import: ["" : 18, "com.microsoft" : 1]>
g (float[1,4,8,8] x, float[4,4,1,1] w) => (float[1,4,8,8] y) <float[1,4,8,8] b> {
    a = Sigmoid(x)
    b = com.microsoft.Trilu(a)
    y = Conv(b, w)
}
"""


def test_an_operator_that_keeps_positions_costs_only_itself(call: Any, tmp_path: Path) -> None:
    onnx.save(onnx.parser.parse_model(FOREIGN), tmp_path / "m.onnx")
    command = ["export", tmp_path / "m.onnx", "-o", tmp_path / "b", "--input", "x", "--no-calibrate"]
    assert "--keeps-positions" in call(*command).error
    assert call(*command, "--keeps-positions", "com.microsoft.Trilu").code == 0
    inspected = call("inspect", tmp_path / "b", "--json").json
    assert inspected["coverage"] == 1.0
    (dense,) = inspected["densified"]
    assert dense["reason"].endswith("behind it rows are gathered again")
