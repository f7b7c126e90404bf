"""What nodes and sessions cost is measured of both kinds of kernels."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

from retouch.ort_ep import register
from retouch.validation.kernels import load_times, node_times

pytestmark = pytest.mark.skipif(not register(), reason=f"there are no kernels: {register().reason}")


def test_nodes_and_sessions_take_time(tmp_path: Path) -> None:
    assert set(node_times(1)) == {"Retouch", "stock"}
    text = '<ir_version: 10, opset_import: ["" : 18]> g (float[4] x) => (float[4] y) { y = Neg(x) }'
    onnx.save(onnx.parser.parse_model(text), tmp_path / "edit.onnx")
    loads = load_times(tmp_path / "edit.onnx", 2)
    assert min(loads.values()) > 0 and set(loads) == {"Retouch", "stock"}
