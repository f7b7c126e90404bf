"""Filters of Resize, compared with ONNX Runtime's own."""

from __future__ import annotations

import itertools

import numpy as np
import onnxruntime
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from retouch.errors import ExportError
from retouch.region import COORDINATE_MODES, ResizeFilter, filtered_axis

SIZES = [(8, 16), (8, 4), (9, 5), (7, 20), (16, 3), (5, 5)]
FILTERS = [
    ResizeFilter(mode, antialias, outside)
    for mode, antialias, outside in itertools.product(("linear", "cubic"), (False, True), (False, True))
    if mode == "cubic" or antialias
]


def by_runtime(values: NDArray[np.float32], out: int, filtering: ResizeFilter, coordinates: str) -> NDArray[np.float32]:
    """The last axis of values [4, n] resized by ONNX Runtime."""
    sizes = numpy_helper.from_array(np.array([1, 1, values.shape[0], out], np.int64), "sizes")
    node = helper.make_node(
        "Resize",
        ["x", "", "", "sizes"],
        ["y"],
        mode=filtering.mode,
        coordinate_transformation_mode=coordinates,
        antialias=int(filtering.antialias),
        exclude_outside=int(filtering.exclude_outside),
        cubic_coeff_a=filtering.coefficient,
    )
    given = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 1, *values.shape])
    result = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph([node], "resize", [given], [result], [sizes])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return np.asarray(session.run(None, {"x": values[None, None]})[0], np.float32)[0, 0]


@pytest.mark.parametrize("coordinates", COORDINATE_MODES)
@pytest.mark.parametrize("filtering", FILTERS, ids=str)
def test_agrees_with_onnxruntime(filtering: ResizeFilter, coordinates: str) -> None:
    for size, out in SIZES:
        values = np.random.default_rng(size).standard_normal((4, size)).astype(np.float32)
        sources, weights = filtered_axis(size, out, out / size, filtering, coordinates)
        got = (values[:, np.array(sources)] * np.array(weights, np.float32)).sum(axis=-1)
        expected = by_runtime(values, out, filtering, coordinates)
        np.testing.assert_allclose(got, expected, rtol=0, atol=5e-6, err_msg=f"{size} -> {out}")


def test_another_cubic_coefficient() -> None:
    values = np.random.default_rng(1).standard_normal((4, 8)).astype(np.float32)
    results = []
    for coefficient in (-0.5, -0.75):
        filtering = ResizeFilter("cubic", coefficient=coefficient)
        sources, weights = filtered_axis(8, 16, 2.0, filtering)
        results.append((values[:, np.array(sources)] * np.array(weights, np.float32)).sum(axis=-1))
        np.testing.assert_allclose(results[-1], by_runtime(values, 16, filtering, "half_pixel"), rtol=0, atol=5e-6)
    assert np.abs(results[0] - results[1]).max() > 1e-3


def test_no_row_is_read_for_nothing() -> None:
    sources, weights = filtered_axis(8, 8, 1.0, ResizeFilter("cubic"))
    assert sources == tuple((position,) for position in range(8))
    assert weights == ((1.0,),) * 8


def test_unknown_mode() -> None:
    with pytest.raises(ExportError, match="one of linear, cubic, got 'lanczos'"):
        ResizeFilter("lanczos")
