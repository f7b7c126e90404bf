"""RMS norms are written with a division."""

from __future__ import annotations

import numpy as np
import onnx
import onnx_ir as ir
from onnx.reference import ReferenceEvaluator

from retouch.export.divide_rms import divide_rms

_NORM = """
<ir_version: 10, opset_import: ["" : 18]>
g (float[1,4,8] x) => (float[1,4,8] y)
<float two = {2}, float small = {1e-6}, int64[1] last = {-1}> {
  square = Pow (x, two)
  mean = ReduceMean <keepdims = 1> (square, last)
  total = Add (mean, small)
  root = Sqrt (total)
  inverse = Reciprocal (root)
  y = Mul (x, inverse)
}
"""


def _model(text: str) -> ir.Model:
    return ir.from_proto(onnx.shape_inference.infer_shapes(onnx.parser.parse_model(text)))


def _run(model: ir.Model) -> np.ndarray:
    x = np.random.default_rng(0).standard_normal((1, 4, 8)).astype(np.float32)
    result: np.ndarray = ReferenceEvaluator(ir.to_proto(model)).run(None, {"x": x})[0]
    return result


def test_reciprocal_of_the_root_becomes_a_division() -> None:
    model = _model(_NORM)
    before = _run(model)
    assert divide_rms(model) == 1
    assert [node.op_type for node in model.graph] == ["Pow", "ReduceMean", "Add", "Sqrt", "Div"]
    onnx.checker.check_model(ir.to_proto(model))
    np.testing.assert_allclose(_run(model), before, rtol=1e-6)


def test_a_reciprocal_with_other_users_stays_for_them() -> None:
    model = _model(_NORM.replace("=> (float[1,4,8] y)", "=> (float[1,4,8] y, float[1,4,1] inverse)"))
    assert divide_rms(model) == 1
    assert "Reciprocal" in [node.op_type for node in model.graph]
    onnx.checker.check_model(ir.to_proto(model))


def test_a_product_with_the_root_of_something_else_is_left_alone() -> None:
    model = _model(_NORM.replace("Pow (x, two)", "Pow (z, two)").replace("square =", "z = Relu (x) square ="))
    assert divide_rms(model) == 0
