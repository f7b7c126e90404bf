"""Fused operators against ONNX Runtime's own kernels, or against their definition where the CPU has none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime
import pytest
from onnx import helper

from retouch.errors import ModelError
from retouch.export.decompose import decompose

Arrays = Mapping[str, np.ndarray]
RANDOM = np.random.default_rng(0)


def _array(*shape: int) -> np.ndarray:
    return RANDOM.standard_normal(shape, dtype=np.float32)


def _model(
    op_type: str, inputs: Mapping[str, np.ndarray | None], outputs: int, domain: str, attributes: dict[str, Any]
):
    given = {name: array for name, array in inputs.items() if array is not None}
    names = [f"y{index}" for index in range(outputs)]
    node = helper.make_node(
        op_type, [name if inputs[name] is not None else "" for name in inputs], names, domain=domain, **attributes
    )
    kinds = {np.dtype("float32"): 1, np.dtype("int64"): 7}
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info(name, kinds[array.dtype], array.shape) for name, array in given.items()],
        [helper.make_tensor_value_info(name, 1, None) for name in names],
    )
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def _run(model: onnx.ModelProto, feeds: Arrays) -> list[np.ndarray]:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, dict(feeds))


def _decomposed(model: onnx.ModelProto) -> onnx.ModelProto:
    graph = ir.from_proto(model)
    assert decompose(graph) == 1
    assert all(node.domain == "" for node in graph.graph)
    return ir.to_proto(graph)


X, Y = _array(2, 6, 8), _array(2, 6, 8)
CASES: dict[str, tuple[str, dict[str, np.ndarray | None], dict[str, Any]]] = {
    "Gelu": ("Gelu", {"x": X}, {}),
    "BiasGelu": ("BiasGelu", {"x": X, "b": _array(8)}, {}),
    "FastGelu": ("FastGelu", {"x": X}, {}),
    "FastGelu with a bias": ("FastGelu", {"x": X, "b": _array(8)}, {}),
    "QuickGelu": ("QuickGelu", {"x": X}, {}),
    "QuickGelu as SiLU": ("QuickGelu", {"x": X}, {"alpha": 1.0}),
    "SkipLayerNormalization": (
        "SkipLayerNormalization",
        {"x": X, "skip": Y, "gamma": _array(8), "beta": _array(8), "bias": _array(8)},
        {"epsilon": 1e-5},
    ),
    "SkipLayerNormalization without bias": (
        "SkipLayerNormalization",
        {"x": X, "skip": Y, "gamma": _array(8)},
        {"epsilon": 1e-5},
    ),
    "SkipSimplifiedLayerNormalization": (
        "SkipSimplifiedLayerNormalization",
        {"x": X, "skip": Y, "gamma": _array(8), "bias": _array(8)},
        {"epsilon": 1e-6},
    ),
    "FusedMatMul": ("FusedMatMul", {"a": _array(2, 3, 6, 8), "b": _array(2, 3, 5, 8)}, {"transB": 1, "alpha": 0.5}),
    "FusedMatMul, batch behind rows": (
        "FusedMatMul",
        {"a": _array(6, 3, 8), "b": _array(5, 3, 8)},
        {"transB": 1, "transBatchA": 1, "transBatchB": 1},
    ),
    "FusedMatMul, first transposed": ("FusedMatMul", {"a": _array(2, 8, 6), "b": _array(2, 8, 5)}, {"transA": 1}),
    "FusedGemm": (
        "FusedGemm",
        {"a": _array(4, 6), "b": _array(5, 6), "c": _array(5)},
        {"transB": 1, "alpha": 0.5, "activation": "LeakyRelu", "activation_alpha": 0.01},
    ),
    "FusedConv": (
        "FusedConv",
        {"x": _array(1, 3, 7, 7), "w": _array(4, 3, 3, 3), "b": _array(4), "z": _array(1, 4, 7, 7)},
        {"pads": [1, 1, 1, 1], "activation": "Relu"},
    ),
    "MultiHeadAttention": ("MultiHeadAttention", {"q": X, "k": Y, "v": _array(2, 6, 8)}, {"num_heads": 2}),
    "MultiHeadAttention of another length, biased": (
        "MultiHeadAttention",
        {"q": X, "k": _array(2, 5, 8), "v": _array(2, 5, 8), "bias": _array(24)},
        {"num_heads": 2, "scale": 0.3},
    ),
    "MultiHeadAttention with a mask": (
        "MultiHeadAttention",
        {"q": X, "k": Y, "v": _array(2, 6, 8), "bias": None, "pad": None, "mask": _array(1, 2, 6, 6)},
        {"num_heads": 2},
    ),
    "MultiHeadAttention, keys by head": (
        "MultiHeadAttention",
        {"q": X, "k": _array(2, 2, 5, 4), "v": _array(2, 2, 5, 4)},
        {"num_heads": 2},
    ),
    "Attention": ("Attention", {"x": X, "w": _array(8, 24), "b": _array(24)}, {"num_heads": 2}),
    "RotaryEmbedding": (
        "RotaryEmbedding",
        {"x": _array(2, 3, 6, 8), "p": np.tile(np.arange(6), (2, 1)), "c": _array(9, 4), "s": _array(9, 4)},
        {},
    ),
    "RotaryEmbedding by hidden size": (
        "RotaryEmbedding",
        {"x": _array(2, 6, 24), "p": np.tile(np.arange(6), (2, 1)), "c": _array(9, 4), "s": _array(9, 4)},
        {"num_heads": 3},
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_decomposition_computes_what_the_kernel_computes(case: str) -> None:
    op_type, inputs, attributes = CASES[case]
    model = _model(op_type, inputs, 1, "com.microsoft", attributes)
    feeds = {name: array for name, array in inputs.items() if array is not None}
    (expected,), (got,) = _run(model, feeds), _run(_decomposed(model), feeds)
    assert got.shape == expected.shape
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)


def test_the_sum_in_front_of_a_norm_is_its_fourth_output() -> None:
    inputs = {"x": X, "skip": Y, "gamma": _array(8)}
    model = _model("SkipSimplifiedLayerNormalization", inputs, 4, "com.microsoft", {})
    del model.graph.output[1:3]
    model.graph.node[0].output[1] = model.graph.node[0].output[2] = ""
    expected, got = _run(model, inputs), _run(_decomposed(model), inputs)
    np.testing.assert_allclose(got[0], expected[0], atol=1e-5)
    np.testing.assert_array_equal(got[1], X + Y)


@pytest.mark.parametrize("last", [True, False])
def test_group_norm_follows_its_definition(last: bool) -> None:
    shape = (2, 5, 5, 8) if last else (2, 8, 5, 5)
    inputs = {"x": _array(*shape), "gamma": _array(8), "beta": _array(8)}
    attributes = {"groups": 4, "activation": 1, "epsilon": 1e-5, "channels_last": int(last)}
    (got,) = _run(_decomposed(_model("GroupNorm", inputs, 1, "com.microsoft", attributes)), inputs)
    x = np.moveaxis(inputs["x"], -1, 1) if last else inputs["x"]
    grouped = x.reshape(2, 4, -1)
    normal = (grouped - grouped.mean(-1, keepdims=True)) / np.sqrt(grouped.var(-1, keepdims=True) + 1e-5)
    affine = normal.reshape(x.shape) * inputs["gamma"][:, None, None] + inputs["beta"][:, None, None]
    expected = affine / (1 + np.exp(-affine))
    np.testing.assert_allclose(got, np.moveaxis(expected, 1, -1) if last else expected, atol=1e-5)


def test_convolution_with_channels_last_is_a_convolution() -> None:
    inputs = {"x": _array(1, 7, 7, 3), "w": _array(4, 3, 3, 3), "b": _array(4)}
    (got,) = _run(_decomposed(_model("NhwcConv", inputs, 1, "com.microsoft", {"pads": [1, 1, 1, 1]})), inputs)
    plain = {"x": np.moveaxis(inputs["x"], -1, 1), "w": np.moveaxis(inputs["w"], -1, 1), "b": inputs["b"]}
    (expected,) = _run(_model("Conv", plain, 1, "", {"pads": [1, 1, 1, 1]}), plain)
    np.testing.assert_allclose(got, np.moveaxis(expected, 1, -1), atol=1e-5)


@pytest.mark.parametrize(
    ("op_type", "inputs", "attributes", "reason"),
    [
        ("MultiHeadAttention", {"q": X, "k": Y, "v": Y}, {"num_heads": 2, "unidirectional": 1}, "causal"),
        ("Attention", {"x": X, "w": _array(8, 24), "b": _array(24)}, {"num_heads": 2, "unidirectional": 1}, "causal"),
    ],
)
def test_forms_that_cannot_be_taken_apart_are_refused(
    op_type: str, inputs: dict[str, np.ndarray], attributes: dict[str, Any], reason: str
) -> None:
    model = ir.from_proto(_model(op_type, inputs, 1, "com.microsoft", attributes))
    with pytest.raises(ModelError, match=reason):
        decompose(model)


def test_the_internal_layout_is_refused() -> None:
    model = _model("ReorderInput", {"x": _array(1, 8, 4, 4)}, 1, "com.microsoft.nchwc", {})
    with pytest.raises(ModelError, match="ORT_ENABLE_EXTENDED"):
        decompose(ir.from_proto(model))
