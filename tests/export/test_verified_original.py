"""An export compares its base graph with the file it came from."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import pytest

from retouch.errors import VerificationError
from retouch.export import export_onnx

MODEL = """
<ir_version: 10, opset_import: ["" : 18]>
image (float[1,4,8,8] x) => (float[1,4,8,8] y) <float factor = {1.5}> { a = Mul(x, factor) y = Tanh(a) }
"""
UNKNOWN_TO_THE_CPU = """
<ir_version: 10, opset_import: ["" : 18, "com.microsoft" : 1]>
image (float[1,8,8,4] x) => (float[1,8,8,4] y) {
    y = com.microsoft.GroupNorm <groups = 2, activation = 0> (x, scale, shift)
}
"""


@pytest.fixture
def model(tmp_path: Path) -> Path:
    onnx.save(onnx.parser.parse_model(MODEL), tmp_path / "model.onnx")
    return tmp_path / "model.onnx"


def test_the_base_graph_computes_what_the_model_computes(model: Path) -> None:
    bundle = export_onnx(model, model.parent / "bundle")
    assert bundle.manifest.verification["original"] <= 1e-6


def test_a_pass_that_changes_what_is_computed_is_found(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def spoil(changed: ir.Model) -> int:
        for value in changed.graph.initializers.values():
            assert value.const_value is not None
            value.const_value = ir.tensor(value.const_value.numpy() * np.float32(1.001), name=value.name)
        return 1

    monkeypatch.setattr("retouch.export.pipeline.divide_rms", spoil)
    with pytest.raises(VerificationError, match=r"original: \d\.\d\de-0[34] \(allowed 2e-05\)"):
        export_onnx(model, model.parent / "bundle")
    assert not (model.parent / "bundle").exists()


def test_an_original_that_does_not_run_here_is_announced(tmp_path: Path) -> None:
    proto = onnx.parser.parse_model(UNKNOWN_TO_THE_CPU)
    for name in ("scale", "shift"):
        proto.graph.initializer.append(onnx.numpy_helper.from_array(np.ones(4, np.float32), name))
    onnx.save(proto, tmp_path / "model.onnx")
    told: list[str] = []
    bundle = export_onnx(tmp_path / "model.onnx", tmp_path / "bundle", tell=told.append)
    assert "original" not in bundle.manifest.verification
    assert any("the original cannot be compared" in line for line in told)
