"""The library as one of custom operators: without function bodies, on every runtime that takes such libraries."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx.reference
import onnxruntime
import pytest

from retouch.export.ops import functions
from retouch.ort_ep import custom_ops_library, library, register
from tests.ort_ep.operands import (
    CONSTANTS,
    INDICES,
    OPSET,
    attributes_of,
    function_of,
    operands_of,
)
from tests.ort_ep.single_node import DOMAIN, open_session, run_all_ours

pytestmark = pytest.mark.skipif(isinstance(library(), str), reason=f"there is no library: {library()}")

TOLERANCE = {"rtol": 5e-5, "atol": 2e-5}
PARTS = ("", "GatedAddedKeptAffineSilu", "AffineTanhGelu")
BASES = (
    *("EditConv", "RowLinear", "DepthwiseEditConv", "GroupedEditConv", "EditGroupNorm", "StackedGroupNorm", "Rows"),
    *("GatherRows", "MaskedMerge", "ScatterRows", "EditAttention", "StackedAttention", "GroupMoments", "MomentAffine"),
)
NAMES = [function.name for function in functions(OPSET)]
CHOSEN = [name for base in BASES for lead in ("", "Batch") for part in PARTS if (name := lead + base + part) in NAMES]


def open_custom(model: onnx.ModelProto, threads: int = 1) -> onnxruntime.InferenceSession:
    """A session on the custom operators, of a model that brings no bodies."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.register_custom_ops_library(str(custom_ops_library()))
    bare = onnx.ModelProto()
    bare.CopyFrom(model)
    del bare.functions[:]
    return onnxruntime.InferenceSession(bare.SerializeToString(), options, providers=["CPUExecutionProvider"])


def model_of(op: str, *, dtype: str = "float32") -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """One node with its function, and feeds."""
    function = function_of(op)
    operands = {
        name: value.astype(dtype) if value.dtype == np.float32 else value
        for name, value in operands_of(op, list(function.input)).items()
    }
    node = onnx.helper.make_node(
        op, list(operands), list(function.output), domain=DOMAIN, name="node", **attributes_of(function)
    )
    kind = onnx.helper.np_dtype_to_tensor_dtype
    inputs = [
        onnx.helper.make_tensor_value_info(name, kind(value.dtype), value.shape)
        for name, value in operands.items()
        if name not in CONSTANTS
    ]
    first = kind(next(iter(operands.values())).dtype)
    outputs = [onnx.helper.make_tensor_value_info(name, first, None) for name in function.output]
    constants = [onnx.numpy_helper.from_array(value, name) for name, value in operands.items() if name in CONSTANTS]
    graph = onnx.helper.make_graph([node], "single", inputs, outputs, constants)
    opsets = [onnx.helper.make_opsetid("", OPSET), onnx.helper.make_opsetid(DOMAIN, 1)]
    model = onnx.helper.make_model(graph, opset_imports=opsets, functions=[function], ir_version=8)
    return model, {value.name: operands[value.name] for value in inputs}


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("op", CHOSEN)
def test_operators_compute_what_their_bodies_compute(op: str, threads: int) -> None:
    model, feeds = model_of(op)
    results = open_custom(model, threads).run(None, feeds)
    expected = onnx.reference.ReferenceEvaluator(model).run(None, feeds)
    assert len(results) == len(expected)
    for got, wanted in zip(results, expected, strict=True):
        np.testing.assert_allclose(got, wanted, **TOLERANCE)
    if register():
        for got, ours in zip(results, run_all_ours(model, feeds, threads), strict=True):
            np.testing.assert_array_equal(got, ours)


@pytest.mark.parametrize("dtype", ["float16", "float64", "int64", "uint8", "bool"])
@pytest.mark.parametrize("op", ["GatherRows", "MaskedMerge", "ScatterRows"])
def test_rows_of_any_type(op: str, dtype: str) -> None:
    model, feeds = model_of(op, dtype=dtype)
    (got,) = open_custom(model).run(None, feeds)
    assert got.dtype == dtype
    np.testing.assert_array_equal(got, onnx.reference.ReferenceEvaluator(model).run(None, feeds)[0])


def test_every_operator_is_there_with_the_operands_of_its_function() -> None:
    nodes, inputs = [], []
    for function in functions(OPSET):
        names = [f"{function.name}.{value.name}" for value in function.inputs]
        outputs = [f"{function.name}.result.{index}" for index in range(len(function.outputs))]
        attributes = dict.fromkeys(function.attributes, 1)
        nodes.append(onnx.helper.make_node(function.name, names, outputs, domain=DOMAIN, **attributes))
        for name in names:
            indexed = name.rpartition(".")[2] in INDICES
            kind = onnx.TensorProto.INT64 if indexed else onnx.TensorProto.FLOAT
            inputs.append(onnx.helper.make_tensor_value_info(name, kind, None))
    result = onnx.helper.make_tensor_value_info(nodes[0].output[0], onnx.TensorProto.FLOAT, None)
    graph = onnx.helper.make_graph(nodes, "all", inputs, [result])
    opsets = [onnx.helper.make_opsetid("", OPSET), onnx.helper.make_opsetid(DOMAIN, 1)]
    session = open_custom(onnx.helper.make_model(graph, opset_imports=opsets, ir_version=8))
    assert len(session.get_inputs()) == len(inputs)


def test_a_value_of_the_graph_is_written_to_in_place_unless_it_is_read_again() -> None:
    model, feeds = model_of("ScatterRows")
    graph, before = model.graph, feeds["cached"].copy()
    graph.node[0].input[0], graph.node[0].output[0] = "negated", "merged"
    nodes = [
        onnx.helper.make_node("Neg", ["cached"], ["negated"]),
        *graph.node,
        onnx.helper.make_node("Neg", ["merged"], ["back"]),
        onnx.helper.make_node("Neg", ["negated"], ["again"]),
    ]
    del graph.node[:], graph.output[:]
    graph.node.extend(nodes)
    graph.output.extend(
        onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None) for name in ("back", "again")
    )
    back, again = open_custom(model).run(None, feeds)
    merged = before.copy()
    merged[feeds["index"]] = -feeds["rows"]
    np.testing.assert_array_equal(back, merged)
    np.testing.assert_array_equal(again, before)
    np.testing.assert_array_equal(feeds["cached"], before)


def test_operands_that_do_not_fit_are_an_error_of_the_runtime() -> None:
    model, feeds = model_of("EditConv")
    feeds["halo"] = feeds["halo"] + 10**6
    with pytest.raises(Exception, match="EditConv: expected every index of halo to be from 0 to before 20"):
        open_custom(model).run(None, feeds)


def test_a_model_whose_types_have_no_kernel_does_not_load() -> None:
    model, _ = model_of("EditConv", dtype="float16")
    with pytest.raises(Exception, match=r"EditConv|Type"):
        open_custom(model)


def test_sessions_with_bodies_and_with_custom_operators_live_side_by_side() -> None:
    model, feeds = model_of("RowLinear")
    (custom,) = open_custom(model).run(None, feeds)
    body = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, feeds)
    np.testing.assert_allclose(custom, body[0], **TOLERANCE)
    if register():
        np.testing.assert_array_equal(open_session(model).run(None, feeds)[0], custom)


def test_without_a_library_there_is_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(custom_ops_library(), Path)
    monkeypatch.setenv("RETOUCH_ORT_EP_LIBRARY", "/nowhere/lib.so")
    with pytest.raises(Exception, match=r"'/nowhere/lib.so', which is no file"):
        custom_ops_library()
