"""A model of one operator of ours, run by the execution provider and by its function body on independent references."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import onnx.reference
import onnx_ir as ir
import onnxruntime

from retouch.export.ops import functions
from retouch.ort_ep import register

DOMAIN = "ai.retouch"
OPSET = 18


def make_model(
    op: str,
    feeds: Mapping[str, np.ndarray | None],
    constants: Mapping[str, np.ndarray] | None = None,
    attributes: Mapping[str, Any] | None = None,
    *,
    open_dims: bool = False,
) -> onnx.ModelProto:
    """One node whose operands are the feeds in order: initializers if among the constants, left out if ``None``."""
    constants = constants or {}
    (function,) = map(ir.serde.serialize_function, functions(OPSET, [op]))
    names = ["" if value is None else name for name, value in feeds.items()]
    inputs = [
        onnx.helper.make_tensor_value_info(
            name, onnx.helper.np_dtype_to_tensor_dtype(value.dtype), [None] * value.ndim if open_dims else _shape(value)
        )
        for name, value in feeds.items()
        if value is not None and name not in constants
    ]
    first = next(value for value in feeds.values() if value is not None)
    dtype = onnx.helper.np_dtype_to_tensor_dtype(first.dtype)
    outputs = ["out", "kept"][: len(function.output)]
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node(op, names, outputs, domain=DOMAIN, name="node", **(attributes or {}))],
        "single",
        inputs,
        [onnx.helper.make_tensor_value_info(name, dtype, None) for name in outputs],
        [onnx.numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    opsets = [onnx.helper.make_opsetid("", OPSET), onnx.helper.make_opsetid(DOMAIN, 1)]
    return onnx.helper.make_model(graph, opset_imports=opsets, functions=[function], ir_version=10)


def _shape(value: np.ndarray) -> list[int | None]:
    """The number of rows is open, as in edit graphs; a number, a bias and what is broadcast have none."""
    alone = value.ndim == 0 or (value.dtype == np.float32 and (value.ndim == 1 or value.shape[0] == 1))
    return list(value.shape) if alone else [None, *value.shape[1:]]


def open_session(
    model: onnx.ModelProto, *, threads: int = 1, ours: bool = True, options: Mapping[str, str] | None = None
) -> onnxruntime.InferenceSession:
    """The model in a session with or without the execution provider."""
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = threads
    settings.log_severity_level = 3
    settings.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    if ours:
        settings.add_provider_for_devices(register().required(), dict(options or {}))
    return onnxruntime.InferenceSession(model.SerializeToString(), settings)


def claimed(session: onnxruntime.InferenceSession) -> list[str]:
    """The operators of the nodes that the execution provider took."""
    parts = session.get_provider_graph_assignment_info()
    return [node.op_type for part in parts if part.ep_name == "RetouchExecutionProvider" for node in part.get_nodes()]


def run_ours(model: onnx.ModelProto, feeds: Mapping[str, np.ndarray | None], threads: int = 1) -> np.ndarray:
    """The result of the execution provider, which must have claimed the node."""
    return run_all_ours(model, feeds, threads)[0]


def run_all_ours(model: onnx.ModelProto, feeds: Mapping[str, np.ndarray | None], threads: int = 1) -> list[np.ndarray]:
    """All results of the execution provider, which must have claimed the node."""
    session = open_session(model, threads=threads)
    assert claimed(session) == [model.graph.node[0].op_type]
    wanted = {value.name for value in model.graph.input}
    return [np.asarray(r) for r in session.run(None, {name: v for name, v in feeds.items() if name in wanted})]


def run_reference(model: onnx.ModelProto, feeds: Mapping[str, np.ndarray | None]) -> np.ndarray:
    """The result of the function body in onnx's reference evaluator."""
    return run_all_reference(model, feeds)[0]


def run_all_reference(model: onnx.ModelProto, feeds: Mapping[str, np.ndarray | None]) -> list[np.ndarray]:
    """All results of the function body in onnx's reference evaluator."""
    wanted = {value.name for value in model.graph.input}
    given = {name: value for name, value in feeds.items() if name in wanted}
    return [np.asarray(result) for result in onnx.reference.ReferenceEvaluator(model).run(None, given)]


def neighbourhood(
    rng: np.random.Generator, active: int, cached: int, taps: int, row: Sequence[int], dtype: str = "float32"
) -> dict[str, np.ndarray]:
    """Random operands of GatherRows and EditConv: every kind of table row is named, unless there is none."""
    halo = rng.permutation(cached)[: cached // 2].astype(np.int64)
    return {
        "rows": rng.standard_normal((active, *row)).astype(dtype),
        "cached": rng.standard_normal((cached, *row)).astype(dtype),
        "halo": halo,
        "pad": np.zeros((1, *row), dtype),
        "neighbours": rng.integers(0, active + len(halo) + 1, (active, taps)).astype(np.int64),
    }
