"""Convolutions that read their weights as the model stores them."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest

from retouch.engines.ort._stored_weights import give_stored_weights
from retouch.ort_ep import register
from tests.ort_ep.single_node import claimed, make_model, neighbourhood, open_session

TOLERANCE = {"rtol": 2e-5, "atol": 2e-5}
KERNEL = {9: (3, 3), 4: (2, 2), 5: (5,), 8: (2, 2, 2)}


def normal(*shape: int) -> np.ndarray:
    return np.random.default_rng(shape).standard_normal(shape).astype(np.float32)


def convolution(
    op: str, rows: int, channels: int, columns: int, taps: int, groups: int = 1
) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """A model as it is exported, with the kernel [C_out, C, ...] and what makes the weights of it, and its feeds."""
    samples = 2 if op.startswith("Batch") else 1
    row = (channels,) if samples == 1 else (samples, channels)
    depth = channels // groups
    kernel = normal(columns, depth, *KERNEL[taps]) / np.float32(np.sqrt(taps * depth))
    feeds = {**neighbourhood(np.random.default_rng(rows), rows, 40, taps, row)}
    operands = {**feeds, "weight": normal(columns, taps * depth), "bias": normal(columns)}
    if samples > 1:
        operands["form"] = np.array([-1, samples, columns])
    constants = {name: value for name, value in operands.items() if name not in feeds}
    model = make_model(op, operands, constants, {"groups": groups} if "Grouped" in op else None)
    _store(model, kernel)
    return model, feeds


def _store(model: onnx.ModelProto, kernel: np.ndarray) -> None:
    (weight,) = [tensor for tensor in model.graph.initializer if tensor.name == "weight"]
    model.graph.initializer.remove(weight)
    size = np.array([kernel.shape[0], kernel[0].size])
    constants = {"kernel": kernel, "size": size}
    model.graph.initializer.extend(onnx.numpy_helper.from_array(value, name) for name, value in constants.items())
    turn = onnx.helper.make_node("Transpose", ["kernel"], ["turned"], perm=[0, *range(2, kernel.ndim), 1])
    for node in (onnx.helper.make_node("Reshape", ["turned", "size"], ["weight"]), turn):
        model.graph.node.insert(0, node)


def stored(model: onnx.ModelProto) -> onnx.ModelProto:
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    give_stored_weights(changed)
    return changed


def run(model: onnx.ModelProto, feeds: dict[str, np.ndarray], weights: str = "float32") -> np.ndarray:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    options.add_provider_for_devices(register().required(), {"weights": weights})
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    assert claimed(session) == [model.graph.node[-1].op_type]
    return np.asarray(session.run(None, feeds)[0])


CASES = [
    ("EditConv", 23, 70, 65, 9, 1),
    ("EditConv", 7, 3, 5, 4, 1),
    ("EditConv", 133, 19, 33, 5, 1),
    ("EditConvSilu", 6, 16, 130, 8, 1),
    ("BatchEditConv", 13, 12, 20, 9, 1),
    ("GroupedEditConv", 9, 12, 20, 9, 4),
    ("BatchGroupedEditConv", 5, 12, 20, 4, 2),
]


@pytest.mark.parametrize("weights", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize(("op", "rows", "channels", "columns", "taps", "groups"), CASES)
def test_results_are_those_of_weights_that_the_runtime_brought_into_order(
    op: str, rows: int, channels: int, columns: int, taps: int, groups: int, weights: str
) -> None:
    model, feeds = convolution(op, rows, channels, columns, taps, groups)
    changed = stored(model)
    assert [node.op_type for node in changed.graph.node] == [op]
    np.testing.assert_array_equal(run(changed, feeds, weights), run(model, feeds, weights))


@pytest.mark.parametrize(("op", "rows", "channels", "columns", "taps", "groups"), CASES)
def test_bodies_bring_them_into_order_where_no_kernel_does(
    op: str, rows: int, channels: int, columns: int, taps: int, groups: int
) -> None:
    model, feeds = convolution(op, rows, channels, columns, taps, groups)
    got, wanted = (open_session(one, ours=False).run(None, feeds)[0] for one in (stored(model), model))
    np.testing.assert_allclose(got, wanted, **TOLERANCE)


def test_nodes_share_what_is_stored_once() -> None:
    model, _ = convolution("EditConv", 6, 8, 8, 9)
    again = onnx.NodeProto()
    again.CopyFrom(model.graph.node[-1])
    again.output[0], again.name = "again", "again"
    model.graph.node.append(again)
    model.graph.output.append(onnx.helper.make_tensor_value_info("again", onnx.TensorProto.FLOAT, None))
    changed = stored(model)
    kernels = [tensor for tensor in changed.graph.initializer if len(tensor.dims) == 3]
    assert [list(tensor.dims) for tensor in kernels] == [[8, 8, 9]]
    assert {node.input[5] for node in changed.graph.node} == {kernels[0].name}


@pytest.mark.parametrize("axes", [[0, 3, 2, 1], None])
def test_an_operator_stays_if_one_of_its_nodes_computes_weights_otherwise(axes: list[int] | None) -> None:
    """Of two nodes one has its weights as they are, or turned otherwise; the function is that of both."""
    model, _ = convolution("EditConv", 6, 8, 8, 9)
    again = onnx.NodeProto()
    again.CopyFrom(model.graph.node[-1])
    again.output[0], again.name, again.input[5] = "again", "again", "other"
    if axes is None:
        model.graph.initializer.append(onnx.numpy_helper.from_array(normal(8, 72), "other"))
    else:
        turn = onnx.helper.make_node("Transpose", ["kernel"], ["other.turned"], perm=axes)
        model.graph.node.extend([turn, onnx.helper.make_node("Reshape", ["other.turned", "size"], ["other"])])
    model.graph.node.append(again)
    before = model.SerializeToString(deterministic=True)
    give_stored_weights(model)
    assert model.SerializeToString(deterministic=True) == before


def test_taps_that_do_not_fit_what_is_stored_are_an_error() -> None:
    """As many numbers as the weight has are not enough."""
    model, feeds = convolution("EditConv", 6, 4, 8, 9)
    for value in model.graph.input:
        for dim in value.type.tensor_type.shape.dim:
            dim.ClearField("dim_value")
    session = open_session(stored(model))
    assert claimed(session) == ["EditConv"]
    feeds["neighbours"] = np.tile(feeds["neighbours"][:, :1], (1, 36))
    narrow = {name: feeds[name][..., :1] for name in ("rows", "cached", "pad")}
    with pytest.raises(Exception, match="36 taps of 1 channels to be as many as the weight has, got 9 taps of 4"):
        session.run(None, {**feeds, **narrow})
