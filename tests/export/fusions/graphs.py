"""Graphs as they are before fusions, and what they compute before and after."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime

from retouch.export.fusions import fuse
from retouch.export.ops import functions
from retouch.export.ops._domain import DOMAIN


def graph_of(text: str, weights: Mapping[str, np.ndarray] | None = None) -> ir.Model:
    """A model whose nodes of ours are written ``ai.retouch.Name``, with its functions."""
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 18, "{DOMAIN}" : 1]> {text}')
    for name, array in (weights or {}).items():
        model.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    found = ir.serde.deserialize_model(model)
    _add_functions(found)
    return found


def _add_functions(model: ir.Model) -> None:
    model.functions.clear()
    for function in functions(18, {node.op_type for node in model.graph if node.domain == DOMAIN}):
        model.functions[function.identifier()] = function


def fused(model: ir.Model, feeds: Mapping[str, np.ndarray]) -> Counter[str]:
    """The operators after the fusions, which must leave inputs, outputs and what stock kernels compute as they were."""
    names = [value.name for value in (*model.graph.inputs, *model.graph.outputs)]
    before = _run(model, feeds)
    fuse(model)
    _add_functions(model)
    assert [value.name for value in (*model.graph.inputs, *model.graph.outputs)] == names
    for old, new in zip(before, _run(model, feeds), strict=True):
        np.testing.assert_allclose(new, old, rtol=1e-6, atol=1e-6)
    return Counter(node.op_type for node in model.graph)


def _run(model: ir.Model, feeds: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    session = onnxruntime.InferenceSession(
        ir.serde.serialize_model(model).SerializeToString(), providers=["CPUExecutionProvider"]
    )
    return [np.asarray(result) for result in session.run(None, dict(feeds))]


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(np.float32)
