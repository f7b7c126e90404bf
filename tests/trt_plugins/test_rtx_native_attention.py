"""EditAttention by way of ONNX's Attention: what it computes, and what TensorRT-RTX makes of it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
import tensorrt_rtx as trt

from retouch.bundle import Bundle
from retouch.engines.tensorrt import Messages, logger
from retouch.errors import BuildError, BuildRequestError
from retouch.export import ExportOptions, export_onnx
from retouch.trt_plugins import BuildOptions, Target, build
from retouch.trt_plugins._graphs import LoadedGraph
from retouch.trt_plugins._native_attention import with_native_attention
from retouch.trt_plugins._parse import parse
from retouch.validation.reference_models import export_reference

NATIVE = BuildOptions(Target.TENSORRT_RTX, rows=("10%",), native_attention=True)
NODE = """
<ir_version: 10, opset_import: ["" : 23, "ai.retouch" : 1]>
g (float[M,8] q, float[M,8] k, float[M,10] v, float[9,2,4] ck, float[9,2,5] cv, int64[M,1] i, float s)
=> (float[M,10] y) { y = ai.retouch.EditAttention(q, k, v, ck, cv, i, s) }
<domain: "ai.retouch", opset_import: ["" : 23]>
EditAttention (q, k, v, ck, cv, i, s) => (y) { y = Identity(v) }
"""


def attended(q: np.ndarray, k: np.ndarray, v: np.ndarray, scale: float) -> np.ndarray:
    scores = scale * np.einsum("qhd,khd->hqk", q, k)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return np.einsum("hqk,khd->qhd", weights / weights.sum(-1, keepdims=True), v).reshape(len(q), -1)


@pytest.mark.parametrize("rows", [1, 3])
def test_it_computes_attention_over_merged_rows(rows: int) -> None:
    model = with_native_attention(onnx.parser.parse_model(NODE))
    generator = np.random.default_rng(rows)
    shapes = {"q": (rows, 8), "k": (rows, 8), "v": (rows, 10), "ck": (9, 2, 4), "cv": (9, 2, 5)}
    feeds = {name: generator.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    index = generator.permutation(9)[:rows].astype(np.int64)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    (got,) = session.run(None, {**feeds, "i": index.reshape(-1, 1), "s": np.array(0.5, np.float32)})
    keys, values = feeds["ck"].copy(), feeds["cv"].copy()
    keys[index], values[index] = feeds["k"].reshape(-1, 2, 4), feeds["v"].reshape(-1, 2, 5)
    assert got.shape == (rows, 10)
    assert np.allclose(got, attended(feeds["q"].reshape(-1, 2, 4), keys, values, 0.5), atol=1e-6)


@pytest.fixture(scope="module")
def half(reference_models: Path, tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    options = ExportOptions(precision="float16", verify=False)
    return export_onnx(export_reference("dit_tiny", reference_models), tmp_path_factory.mktemp("half") / "b", options)


def test_half_precision_has_the_librarys_own_layer(half: Bundle) -> None:
    model = with_native_attention(onnx.load(half.path / "edit.onnx", load_external_data=False))
    messages = Messages()
    log = logger(trt, messages)
    network = trt.Builder(log).create_network(0)
    parser = parse(trt, network, log, LoadedGraph(model, half.path, "", ""), messages, "edit.onnx")
    kinds = [str(network.get_layer(number).type).rpartition(".")[2] for number in range(network.num_layers)]
    assert kinds.count("ATTENTION_INPUT") == kinds.count("ATTENTION_OUTPUT") == 2
    del parser
    made = build(half, NATIVE)
    assert {engine.spec.traits for engine in made} == {("native-attention",)}


def test_what_it_cannot_be_asked_for_with(reference_models: Path, tmp_path: Path) -> None:
    with pytest.raises(BuildRequestError, match="by a plugin or by the library's own layer"):
        BuildOptions(Target.TENSORRT, plugins=True, native_attention=True)
    with pytest.raises(BuildRequestError, match="Native attention is a feature of tensorrt and tensorrt-rtx; ort has"):
        BuildOptions(Target.ORT, native_attention=True)
    bundle = export_onnx(export_reference("dit_tiny", reference_models), tmp_path / "b", ExportOptions(verify=False))
    with pytest.raises(BuildError, match="not supported by a dedicated kernel.*without --native-attention"):
        build(bundle, NATIVE)
