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


SCALED = """
<ir_version: 10, opset_import: ["" : 18]>
model (float[1,4,8,8] x) => (float[1,4,8,8] y) {
    SCALES
    small = AveragePool<kernel_shape = [2, 2], strides = [2, 2]>(x)
    large = Resize<mode = "nearest", coordinate_transformation_mode = "asymmetric", nearest_mode = "floor">
        (small, "", scales)
    y = Add(large, x)
}
"""
CONSTANT = "scales = Constant<value = float[4] {1, 1, 2, 2}>()"


@pytest.mark.parametrize("scales", [CONSTANT, ""])
def test_scales_of_resize_stay_single_as_the_operator_wants_them(scales: str, tmp_path: Path) -> None:
    made = onnx.parser.parse_model(SCALED.replace("SCALES", scales))
    if not scales:
        made.graph.initializer.append(onnx.numpy_helper.from_array(np.array([1, 1, 2, 2], np.float32), "scales"))
    onnx.save(made, tmp_path / "model.onnx")
    bundle = export_onnx(
        tmp_path / "model.onnx", tmp_path / "b", ExportOptions(editable="x", precision="float16", min_coverage=0.0)
    )
    assert {spec.dtype for spec in bundle.manifest.cacheables} == {"float16"}
    x = np.random.default_rng(2).standard_normal((1, 4, 8, 8)).astype(np.float16)
    means = x.astype(np.float32).reshape(1, 4, 4, 2, 4, 2).mean((3, 5))
    with EditSession(bundle, threads=1) as session:
        outputs = session.base({"x": x}).outputs["y"]
    np.testing.assert_allclose(outputs, means.repeat(2, 2).repeat(2, 3) + x, rtol=4e-3, atol=4e-3)


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
