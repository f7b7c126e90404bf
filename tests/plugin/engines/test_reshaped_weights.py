"""Weights are read in the shape that a graph wants, and nothing is computed at load."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx.reference
import pytest

from retouch.engines.ort import OrtEngine
from retouch.engines.ort._reshaped_weights import give_reshaped_weights

HEADER = '<ir_version: 10, opset_import: ["" : 18]>\n'
WEIGHT = np.arange(24, dtype=np.float32).reshape(4, 6, 1, 1)


def model_with(graph: str, folder: Path, *, external: bool = True) -> onnx.ModelProto:
    """A graph in onnx's text form whose ``weight`` lies in a file of its own."""
    model = onnx.parser.parse_model(HEADER + graph)
    model.graph.initializer.append(onnx.numpy_helper.from_array(WEIGHT, "weight"))
    if external:
        onnx.save(model, folder / "model.onnx", save_as_external_data=True, location="weights", size_threshold=64)
        model = onnx.load(folder / "model.onnx", load_external_data=False)
    return model


@pytest.mark.parametrize("sizes", ["{4, 6}", "{6, 4}", "{0, -1}", "{-1}", "{2, 0, 2}", "{0, 0, 1, 1}"])
def test_a_weight_in_another_shape(tmp_path: Path, sizes: str) -> None:
    constant = f"<int64[{sizes.count(',') + 1}] sizes = {sizes}>"
    graph = f"g (float[1] x) => (float y) {constant} {{ w = Reshape(weight, sizes)\n y = Mul(w, x) }}"
    model = model_with(graph, tmp_path)
    feeds = {"x": np.ones(1, np.float32)}
    (expected,) = onnx.reference.ReferenceEvaluator(str(tmp_path / "model.onnx")).run(None, feeds)
    give_reshaped_weights(model)
    assert [node.op_type for node in model.graph.node] == ["Mul"]
    session = OrtEngine(["CPUExecutionProvider"], 1).load(model.SerializeToString(), tmp_path, "model")
    np.testing.assert_array_equal(session.run(None, feeds)[0], expected)


@pytest.mark.parametrize(
    "body",
    [
        "w = Reshape(x, sizes)\n y = Mul(w, weight)",  # no weight
        "s = Shape(x)\n w = Reshape(weight, s)\n y = Mul(w, x)",  # no constant sizes
        "w = Transpose(weight)\n y = Mul(w, x)",  # another operator
    ],
)
def test_what_is_no_weight_in_another_shape_stays(tmp_path: Path, body: str) -> None:
    graph = f"g (float[24] x) => (float y) <int64[2] sizes = {{4, 6}}> {{ {body} }}"
    model = model_with(graph, tmp_path)
    before = model.SerializeToString(deterministic=True)
    give_reshaped_weights(model)
    assert model.SerializeToString(deterministic=True) == before


def test_what_lies_in_the_graph_itself_stays(tmp_path: Path) -> None:
    graph = "g (float[1] x) => (float y) <int64[2] sizes = {4, 6}> { w = Reshape(weight, sizes)\n y = Mul(w, x) }"
    model = model_with(graph, tmp_path, external=False)
    give_reshaped_weights(model)
    assert [node.op_type for node in model.graph.node] == ["Reshape", "Mul"]
