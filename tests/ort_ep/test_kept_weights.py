"""Weights that kernels keep as shorter numbers: products with them, and what they are in sessions."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
import pytest

from retouch.engines.ort import WeightStorage
from retouch.ort_ep import register
from tests.ort_ep.single_node import claimed, make_model, neighbourhood

SHORTER = [WeightStorage.FLOAT16, WeightStorage.BFLOAT16]
TOLERANCE = {"rtol": 2e-5, "atol": 2e-5}


def opened(model: onnx.ModelProto, weights: str) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    options.add_provider_for_devices(register().required(), {"weights": weights})
    return onnxruntime.InferenceSession(model.SerializeToString(), options, enable_fallback=0)


def run(model: onnx.ModelProto, feeds: dict[str, np.ndarray], weights: str) -> np.ndarray:
    session = opened(model, weights)
    assert claimed(session) == [model.graph.node[0].op_type]
    wanted = {value.name for value in model.graph.input}
    return np.asarray(session.run(None, {name: value for name, value in feeds.items() if name in wanted})[0])


def kept(weight: np.ndarray, storage: WeightStorage) -> np.ndarray:
    return weight.astype(np.float16 if storage is WeightStorage.FLOAT16 else ml_dtypes.bfloat16).astype(np.float32)


def linear(rows: int, depth: int, columns: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng([rows, depth, columns])
    return {
        "rows": rng.standard_normal((rows, depth)).astype(np.float32),
        "weight": rng.standard_normal((depth, columns)).astype(np.float32) / np.float32(np.sqrt(depth)),
        "bias": rng.standard_normal(columns).astype(np.float32),
    }


def assert_products(got: np.ndarray, wanted: list[np.ndarray], storage: WeightStorage) -> None:
    """Rows are as they are, or rounded too where the CPU has instructions for bfloat16."""
    exact, rounded = wanted
    rounds = storage is WeightStorage.BFLOAT16 and not np.allclose(got, exact, **TOLERANCE)
    np.testing.assert_allclose(got, rounded if rounds else exact, **TOLERANCE)


@pytest.mark.parametrize("storage", SHORTER)
@pytest.mark.parametrize("rows", [0, 1, 6, 7, 64, 131])
@pytest.mark.parametrize(("depth", "columns"), [(1, 1), (7, 3), (300, 130), (600, 17)])
def test_products_are_those_with_rounded_weights(rows: int, depth: int, columns: int, storage: WeightStorage) -> None:
    feeds = linear(rows, depth, columns)
    model = make_model("RowLinear", feeds, {"weight": feeds["weight"]}, {"transB": 0})
    weight = kept(feeds["weight"], storage).astype(np.float64)
    given = [feeds["rows"], kept(feeds["rows"], storage)]
    wanted = [rows.astype(np.float64) @ weight + feeds["bias"] for rows in given]
    assert_products(run(model, feeds, storage), wanted, storage)


@pytest.mark.parametrize("storage", SHORTER)
@pytest.mark.parametrize(("rows", "samples"), [(5, 1), (23, 1), (23, 2), (150, 1)])
@pytest.mark.parametrize("channels", [19, 20, 260])
def test_convolutions_are_those_with_rounded_weights(
    rows: int, samples: int, channels: int, storage: WeightStorage
) -> None:
    rng = np.random.default_rng(rows)
    row = (channels,) if samples == 1 else (samples, channels)
    weight = rng.standard_normal((70, 9 * channels)).astype(np.float32) / np.float32(3 * np.sqrt(channels))
    feeds = {**neighbourhood(rng, rows, 40, 9, row), "weight": weight, "bias": None}
    if samples > 1:
        feeds["form"] = np.array([-1, samples, 70])
    model, rounded = (
        make_model("EditConv" if samples == 1 else "BatchEditConv", feeds, {**given, **constants_of(feeds)})
        for given in ({"weight": weight}, {"weight": kept(weight, storage)})
    )
    rounded_rows = {**feeds, **{name: kept(feeds[name], storage) for name in ("rows", "cached", "pad")}}
    wanted = [run(rounded, given, "float32") for given in (feeds, rounded_rows)]
    assert_products(run(model, feeds, storage), wanted, storage)


def constants_of(feeds: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {"form": feeds["form"]} if "form" in feeds else {}


def test_weights_of_a_model_in_float16_lose_nothing() -> None:
    """They reach the kernels as float32 numbers, which the runtime makes of them when it loads the model."""
    feeds = linear(5, 64, 48)
    weight = feeds["weight"].astype(np.float16)
    model = make_model("RowLinear", feeds, {"weight": feeds["weight"]}, {"transB": 0})
    model.graph.initializer[0].CopyFrom(onnx.numpy_helper.from_array(weight, "stored"))
    cast = onnx.helper.make_node("Cast", ["stored"], ["weight"], to=onnx.TensorProto.FLOAT)
    model.graph.node.insert(0, cast)
    fed = {"rows": feeds["rows"], "bias": feeds["bias"]}
    as_is, half = (opened(model, weights) for weights in ("float32", "float16"))
    assert claimed(half) == ["RowLinear"]
    np.testing.assert_array_equal(as_is.run(None, fed)[0], half.run(None, fed)[0])


@pytest.mark.parametrize("weight", [70000.0, -1e9, np.inf, np.nan])
def test_a_weight_that_float16_cannot_hold_is_an_error(weight: float) -> None:
    feeds = linear(2, 3, 4)
    feeds["weight"][1, 2] = weight
    model = make_model("RowLinear", feeds, {"weight": feeds["weight"]}, {"transB": 0})
    with pytest.raises(Exception, match=r"expected weights from -65504 to 65504 to keep them as float16, got"):
        opened(model, "float16")


def test_an_unknown_storage_is_an_error() -> None:
    feeds = linear(2, 3, 4)
    model = make_model("RowLinear", feeds, {"weight": feeds["weight"]}, {"transB": 0})
    with pytest.raises(Exception, match="expected the option weights to be float32, float16 or bfloat16, got int4"):
        opened(model, "int4")
