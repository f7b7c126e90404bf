"""What exports of models with large weights take."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from retouch.validation.size import _main as command
from retouch.validation.size._page import page
from retouch.validation.size._steps import Request

WIDTH, LAYERS, ROWS = 2048, 12, 16
IMPORTS = "start"


def write_model(path: Path) -> int:
    """A stack of matrix products whose weights lie beside the graph; returns their bytes."""
    generator = np.random.default_rng(0)
    weights = [(generator.standard_normal((WIDTH, WIDTH)) / WIDTH**0.5).astype(np.float32) for _ in range(LAYERS)]
    nodes = [helper.make_node("MatMul", [f"x{i}", f"w{i}"], [f"x{i + 1}"]) for i in range(LAYERS)]
    ends = [
        helper.make_tensor_value_info(f"x{i}", TensorProto.FLOAT, [1, ROWS, WIDTH]) for i in (0, LAYERS)
    ]  # fmt: skip
    tensors = [onnx.numpy_helper.from_array(weight, f"w{i}") for i, weight in enumerate(weights)]
    graph = helper.make_graph(nodes, "stack", ends[:1], ends[1:], tensors)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    onnx.save(model, path, save_as_external_data=True, location="model.onnx_data")
    return sum(weight.nbytes for weight in weights)


def test_an_export_holds_its_weights_about_once(tmp_path: Path) -> None:
    weights = write_model(tmp_path / "model.onnx")
    lines = list(command._lines(Request(kind="onnx", folder=str(tmp_path), small=True)))
    assert lines[-1]["weights"] == weights
    assert lines[-1]["bundle"] < 1.1 * weights
    steps = [line["done"] for line in lines if "done" in line]
    before = next(step["peak"] for step in steps if step["name"] == IMPORTS)
    worst = max(steps, key=lambda step: step["peak"])
    # Mapped weights of the one session that is open, and what the imports of the steps add.
    assert worst["peak"] - before < 1.7 * weights, f"{worst['name']} takes {worst['peak'] - before} bytes"


def exports() -> Iterable[command.Export]:
    step = {"name": "load", "seconds": 2.0, "peak": 3 * 2**20}
    yield command.Export("onnx", 2**20, 2**21, {"identity": 1e-6}, [step])  # type: ignore[list-item]


def test_page() -> None:
    text = page({"date": "today", "command": "`x`", "threads": "1", "rounds": 1}, list(exports()))
    assert "| from ONNX (with external data) | 1 | 3 | **3.00** | 2 | 2 | 2.000 |" in text
    assert "Largest error of all checks: 1.0e-06" in text
    assert json.dumps("threads")[1:-1] not in text.partition("Every export")[0]


def test_a_process_that_fails_is_reported(tmp_path: Path) -> None:
    with pytest.raises(command.ExportError, match="'onnx' ended with 1"):
        list(command._lines(Request(kind="onnx", folder=str(tmp_path), small=True)))


def test_the_other_half_is_kept_on_the_same_system(tmp_path: Path) -> None:
    written = tmp_path / "size.json"
    entry = {"kind": "torch", "weights": 1, "bundle": 2, "verification": {}, "steps": []}
    written.write_text(json.dumps({"facts": {"system": "this", "date": "1"}, "exports": [entry]}))
    assert list(command._kept(written, {"system": "this", "date": "2"})) == ["torch"]
    assert not command._kept(written, {"system": "other", "date": "2"})
    with pytest.raises(command.ExportError, match="among torch, onnx, got tensorrt"):
        command.main(tmp_path / "build", tmp_path, tmp_path / "size.md", kinds="tensorrt")
    assert not (tmp_path / "build").exists()
