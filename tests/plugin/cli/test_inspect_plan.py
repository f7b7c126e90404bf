"""``retouch inspect`` names every node that is not computed on rows, and why."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnx
import pytest

from retouch.bundle import Bundle

# An operator of ONNX without a rule, one of ONNX Runtime that ONNX does not know, and what stands behind them.
MODEL = """
<ir_version: 10, opset_import: ["" : 18, "com.microsoft" : 1]>
image (float[1,4,8,8] x) => (float[1,4,8,8] y, float[1,4,8,8] z)
<float[1,4,8,8] b> {
    a = Sigmoid(x)
    [triangle] c = Trilu(a)
    [corner] b = com.microsoft.Trilu(a)
    [after] y = Tanh(b)
    [mixed] m = Mul(b, a)
    [regained] z = Mul(m, c)
}
"""
REASONS = {
    "triangle": ("Trilu", "no rule for operator ai.onnx.Trilu; behind it rows are gathered again"),
    "after": ("Tanh", "its input was already computed whole"),
    "corner": (
        "com.microsoft.Trilu",
        "no rule for operator com.microsoft.Trilu; if its result at a position belongs to that position, name it with "
        "--keeps-positions",
    ),
}


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory, call: Any) -> Path:
    folder = tmp_path_factory.mktemp("unknown")
    onnx.save(onnx.parser.parse_model(MODEL), folder / "model.onnx")
    arguments = ("--min-coverage", 0, "--no-calibrate")
    assert call("export", folder / "model.onnx", "-o", folder / "bundle", *arguments).code == 0
    return folder / "bundle"


def test_json_lists_every_densified_node(bundle: Path, call: Any) -> None:
    listed = {row["node"]: (row["op"], row["reason"]) for row in call("inspect", bundle, "--json").json["densified"]}
    assert listed == REASONS
    plan = Bundle.open(bundle).manifest.plan
    assert {row.node for row in plan if row.plan != "incremental"} == set(REASONS)


def test_table_lists_every_densified_node(bundle: Path, call: Any) -> None:
    called = call("inspect", bundle)
    assert called.code == 0
    for node, (op, reason) in REASONS.items():
        (line,) = [line for line in called.stdout.splitlines() if f" {node} " in line]
        assert op in line and reason.split()[0] in line
    assert "mixed" not in called.stdout


def test_refused_export_names_them(tmp_path: Path, call: Any) -> None:
    """Where nothing would be left on rows, the error lists what stays dense."""
    text = MODEL.replace("a = Sigmoid(x)", "a = ReverseSequence<batch_axis = 0, time_axis = 1>(x, all)")
    text = text.replace("b> {", "b, int64[1] all = {4}> {")
    onnx.save(onnx.parser.parse_model(text), tmp_path / "model.onnx")
    called = call("export", tmp_path / "model.onnx", "-o", tmp_path / "bundle")
    assert called.code == 2
    assert "No node of the model would be computed on rows" in called.error
    assert "no rule for operator ai.onnx.ReverseSequence" in called.error


def test_operators_are_listed_with_what_became_of_them(bundle: Path, call: Any) -> None:
    listed = {entry["op"]: entry for entry in call("inspect", bundle, "--json").json["operators"]}
    assert listed["Trilu"]["nodes"] == {"densified": 1}
    assert listed["Mul"]["nodes"] == {"incremental": 2}
    called = call("inspect", bundle, "--ops")
    assert "1 densified" in called.stdout and "1 incremental" in called.stdout


def test_picture_of_the_plan(bundle: Path, call: Any, tmp_path: Path) -> None:
    assert call("inspect", bundle, "--plot", tmp_path / "plan.png").code == 0
    assert (tmp_path / "plan.png").read_bytes().startswith(b"\x89PNG")
    called = call("inspect", bundle, "--plot", tmp_path / "plan.odd")
    assert called.code == 2
    assert "Give a .png, .svg or .pdf file" in called.error
