"""Squares in models of half precision: norms that are written out, of values whose squares no half holds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

from retouch import EditSession, Region
from retouch.errors import VerificationError
from retouch.export import ExportOptions, export_onnx

ROWS, WIDTH, LARGE = 12, 8, 2000.0
MODEL = """
<ir_version: 10, opset_import: ["" : 18]>
model (float[1,12,8] x) => (float[1,12,8] y)
<float large = {2000}, float two = {2}, float tiny = {1e-6}, float[1] few = {1e-12}, int64[1] last = {2}, float[8] gain>
{
    h = Mul(x, large)
    NORM
    y = Mul(n, gain)
}
"""
NORMS = {
    "power": "s = Pow(h, two) m = ReduceMean(s, last) e = Add(m, tiny) r = Sqrt(e) i = Reciprocal(r) n = Mul(h, i)",
    "product": "s = Mul(h, h) m = ReduceMean(s, last) e = Add(m, tiny) r = Sqrt(e) n = Div(h, r)",
    "length": "l = ReduceL2(h, last) e = Max(l, few) n = Div(h, e)",
    "variance": """a = ReduceMean(h, last) c = Sub(h, a) s = Mul(c, c) m = ReduceMean(s, last) e = Add(m, tiny)
        r = Sqrt(e) n = Div(c, r)""",
    "difference": """a = ReduceMean(h, last) b = Mul(a, a) s = Mul(h, h) m = ReduceMean(s, last) v = Sub(m, b)
        e = Add(v, tiny) r = Sqrt(e) c = Sub(h, a) n = Div(c, r)""",
}


def reference(name: str, x: np.ndarray, gain: np.ndarray) -> np.ndarray:
    hidden = LARGE * x.astype(np.float64)
    if name in ("variance", "difference"):
        hidden = hidden - hidden.mean(-1, keepdims=True)
    mean = np.sum if name == "length" else np.mean
    return hidden / np.sqrt(mean(hidden**2, axis=-1, keepdims=True)) * gain


@pytest.mark.parametrize("name", NORMS)
def test_norms_of_values_whose_squares_overflow(name: str, tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    gain = generator.uniform(0.5, 2.0, WIDTH).astype(np.float32)
    model = onnx.parser.parse_model(MODEL.replace("NORM", NORMS[name]))
    model.graph.initializer.append(onnx.numpy_helper.from_array(gain, "gain"))
    onnx.save(model, tmp_path / "model.onnx")
    options = ExportOptions(editable="x", axes=(1,), precision="float16")
    bundle = export_onnx(tmp_path / "model.onnx", tmp_path / "bundle", options)
    assert bundle.manifest.coverage == 1.0
    assert bundle.manifest.inputs[0].dtype == "float16"
    assert 0 < bundle.manifest.verification["converted"] < 4e-3
    x, other = generator.standard_normal((2, 1, ROWS, WIDTH)).astype(np.float16)
    with EditSession(bundle, threads=1) as session:
        run = session.base({"x": x})
        edited = session.edit(run, {"x": other}, region=Region.from_spans([(2, 5)], ROWS)).outputs["y"]
    np.testing.assert_allclose(run.outputs["y"], reference(name, x, gain), atol=8e-3)
    np.testing.assert_allclose(edited[:, 2:5], reference(name, other, gain)[:, 2:5], atol=8e-3)


def test_a_model_that_halves_do_not_hold_is_refused(tmp_path: Path) -> None:
    text = """
    <ir_version: 10, opset_import: ["" : 18]>
    model (float[1,12,8] x) => (float[1,12,8] y) <float large = {1e6}, float small = {1e-6}> {
        h = Mul(x, large)
        r = Relu(h)
        y = Mul(r, small)
    }
    """
    onnx.save(onnx.parser.parse_model(text), tmp_path / "model.onnx")
    options = ExportOptions(editable="x", axes=(1,), precision="float16", min_coverage=0.0)
    with pytest.raises(VerificationError, match=r"converted: \S+ \(allowed 3e-02\)|not finite"):
        export_onnx(tmp_path / "model.onnx", tmp_path / "bundle", options)
    assert not (tmp_path / "bundle").exists()
