"""Scalar factors move behind products."""

from __future__ import annotations

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx.reference import ReferenceEvaluator

from retouch.export.hoist_scale import hoist_scales

_ATTENTION = """
<ir_version: 10, opset_import: ["" : 18]>
g (float[2,4,6] q, float[2,5,6] k) => (float[2,4,5] scores)
<float half = {0.5}, float quarter = {0.25}> {
  a = Mul (q, half)
  b = Mul (quarter, k)
  t = Transpose <perm = [0, 2, 1]> (b)
  scores = MatMul (a, t)
}
"""


def _run(model: ir.Model, feeds: dict[str, np.ndarray]) -> np.ndarray:
    result: np.ndarray = ReferenceEvaluator(ir.to_proto(model)).run(None, feeds)[0]
    return result


def _feeds() -> dict[str, np.ndarray]:
    random = np.random.default_rng(0)
    return {
        "q": random.standard_normal((2, 4, 6)).astype(np.float32),
        "k": random.standard_normal((2, 5, 6)).astype(np.float32),
    }


def _model(text: str) -> ir.Model:
    proto = onnx.shape_inference.infer_shapes(onnx.parser.parse_model(text))
    return ir.from_proto(proto)


def test_both_factors_of_an_attention_become_one_behind_the_product() -> None:
    model = _model(_ATTENTION)
    before = _run(model, _feeds())
    assert hoist_scales(model) == 2
    assert [node.op_type for node in model.graph] == ["Transpose", "MatMul", "Mul"]
    assert model.graph.outputs[0].name == "scores"
    onnx.checker.check_model(ir.to_proto(model))
    np.testing.assert_allclose(_run(model, _feeds()), before, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (("(float[2,4,5] scores)", "(float[2,4,5] scores, float[2,4,6] a)"), "the scaled value is an output"),
        (("t = Transpose", "u = Relu (b) v = Neg (b) t = Transpose"), "the scaled value has other users"),
        (("float quarter = {0.25}", "float[6] quarter = {1, 2, 3, 4, 5, 6}"), "it is not a scalar"),
    ],
)
def test_a_factor_that_something_else_needs_stays(change: tuple[str, str], reason: str) -> None:
    model = _model(_ATTENTION.replace(*change))
    before = _run(model, _feeds())
    assert hoist_scales(model) == 1, reason
    onnx.checker.check_model(ir.to_proto(model))
    np.testing.assert_allclose(_run(model, _feeds()), before, rtol=1e-6, atol=1e-6)


def test_half_precision_products_keep_their_factors() -> None:
    model = _model(_ATTENTION)
    for node in model.graph:
        for value in node.outputs:
            value.type = ir.TensorType(ir.DataType.FLOAT16)
    assert hoist_scales(model) == 0
