"""Convolutions of random shape against the masked reference, by property."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from retouch.export import ExportOptions, export_onnx


def model_with(node: onnx.NodeProto, x: tuple[int, ...], weights: dict[str, np.ndarray]) -> onnx.ModelProto:
    graph = helper.make_graph(
        [node, helper.make_node("Sigmoid", ["c"], ["y"])],
        "conv",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, x)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    return onnx.shape_inference.infer_shapes(model, strict_mode=True)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    kernel=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    stride=st.integers(1, 2),
    pads=st.tuples(*[st.integers(0, 1)] * 4),
    dilation=st.integers(1, 2),
    groups=st.sampled_from([1, 2, 4]),
    batch=st.sampled_from([1, 2]),
    bias=st.booleans(),
)
def test_conv(tmp_path: Path, kernel, stride, pads, dilation, groups, batch, bias) -> None:
    generator = np.random.default_rng(0)
    weights = {"w": generator.standard_normal((8, 4 // groups, *kernel)).astype(np.float32)}
    if bias:
        weights["b"] = generator.standard_normal(8).astype(np.float32)
    node = helper.make_node(
        "Conv",
        ["x", *weights],
        ["c"],
        strides=[stride] * 2,
        pads=list(pads),
        dilations=[dilation] * 2,
        group=groups,
    )
    onnx.save(model_with(node, (batch, 4, 9, 7), weights), tmp_path / "m.onnx")
    bundle = export_onnx(tmp_path / "m.onnx", tmp_path / "bundle", ExportOptions(editable="x", axes=(2, 3)))
    assert bundle.manifest.coverage == 1.0


@pytest.mark.parametrize(("kernel", "stride", "pad"), [(2, 2, 0), (4, 2, 1), (3, 1, 1), (3, 2, 0)])
def test_conv_transpose(tmp_path: Path, kernel: int, stride: int, pad: int) -> None:
    weights = {"w": np.random.default_rng(0).standard_normal((4, 5, kernel, kernel)).astype(np.float32)}
    node = helper.make_node("ConvTranspose", ["x", "w"], ["c"], strides=[stride] * 2, pads=[pad] * 4)
    onnx.save(model_with(node, (1, 4, 6, 5), weights), tmp_path / "m.onnx")
    bundle = export_onnx(tmp_path / "m.onnx", tmp_path / "bundle", ExportOptions(editable="x", axes=(2, 3)))
    assert bundle.manifest.coverage == 1.0
