"""Models in bfloat16, which ONNX Runtime does not run on CPUs, and conversions to other types."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import pytest

from retouch import EditSession, EngineError, Region
from retouch.errors import ExportError
from retouch.export import ExportOptions, export_onnx

MODEL = """
<ir_version: 10, opset_import: ["" : 18]>
model (bfloat16[1,12,8] x, float[1,8] c) => (bfloat16[1,12,8] y) {
    narrow = Cast<to = 16>(c)
    h = MatMul(x, w)
    low = Identity(limit)
    kept = Max(h, low)
    y = Mul(kept, narrow)
}
"""
ROWS = Region.from_spans([(2, 4)], 12)


@pytest.fixture(scope="module")
def weights() -> np.ndarray:
    return np.random.default_rng(0).standard_normal((8, 8)).astype(ml_dtypes.bfloat16)


@pytest.fixture(scope="module")
def model(weights: np.ndarray, tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = onnx.parser.parse_model(MODEL)
    for name, array in (("w", weights), ("limit", np.array(-1e30, ml_dtypes.bfloat16))):
        made.graph.initializer.append(onnx.helper.make_tensor(name, 16, array.shape, array.tobytes(), raw=True))
    path = tmp_path_factory.mktemp("bfloat16") / "model.onnx"
    onnx.save(made, path)
    return path


@pytest.mark.parametrize(("precision", "tolerance"), [("float32", 1e-6), ("float16", 4e-3)])
def test_converted_models(model: Path, weights: np.ndarray, tmp_path: Path, precision: str, tolerance: float) -> None:
    lines: list[str] = []
    bundle = export_onnx(
        model, tmp_path / "b", ExportOptions(editable="x", axes=(1,), precision=precision), tell=lines.append
    )
    assert f"convert 2 weights and constants to {precision}" in lines
    assert {spec.dtype for spec in bundle.manifest.inputs} == {precision}
    generator = np.random.default_rng(1)
    x, c = generator.standard_normal((1, 12, 8)).astype(precision), generator.standard_normal((1, 8)).astype(precision)
    expected = x.astype(np.float64) @ weights.astype(np.float64) * c.astype(np.float64)
    with EditSession(bundle, threads=1) as session:
        run = session.base({"x": x, "c": c})
        edited = session.edit(run, {"x": -x}, region=ROWS).outputs["y"]
    np.testing.assert_allclose(run.outputs["y"], expected, rtol=tolerance, atol=tolerance * 10)
    np.testing.assert_allclose(edited[:, 2:4], -expected[:, 2:4], rtol=tolerance, atol=tolerance * 10)


def test_bfloat16_is_refused_with_advice(model: Path, tmp_path: Path) -> None:
    options = ExportOptions(editable="x", axes=(1,))
    with pytest.raises(ExportError, match=r"bfloat16, for which ONNX Runtime has no kernels.*--precision float32"):
        export_onnx(model, tmp_path / "b", options)
    with pytest.raises(ExportError, match="precision to be 'float32' or 'float16', got 'int8'"):
        export_onnx(model, tmp_path / "b", ExportOptions(editable="x", axes=(1,), precision="int8"))
    assert not (tmp_path / "b").exists()


def test_a_session_on_a_cpu_says_what_to_do(model: Path, tmp_path: Path) -> None:
    bundle = export_onnx(model, tmp_path / "b", ExportOptions(editable="x", axes=(1,), verify=False))
    assert bundle.manifest.inputs[0].dtype == "bfloat16"
    with (
        EditSession(bundle, threads=1) as session,
        pytest.raises(EngineError, match="export the model with --precision"),
    ):
        session.preload()
