"""Source lists of Resize against ONNX's reference implementation and ONNX Runtime."""

from __future__ import annotations

import itertools

import numpy as np
import onnx
import onnxruntime
import pytest
from numpy.typing import NDArray
from onnx.reference import ReferenceEvaluator

from retouch.errors import ExportError
from retouch.region import COORDINATE_MODES, NEAREST_MODES, linear_axis, nearest_axis

SIZES = (1, 2, 3, 4, 5, 7, 8, 11, 16)
Case = tuple[int, int, float]

# Source size, target size, scale. Whoever gives the operator sizes gets their ratio for a scale; whoever gives it
# scales may give others.
BY_SIZES = [(size, other, other / size) for size, other in itertools.product(SIZES, SIZES)]
BY_SCALES = [(size, other, (other + 0.3) / size) for size, other in itertools.product(SIZES, SIZES) if size != other]


def resize(case: Case, mode: str, coordinates: str, nearest: str = "floor") -> onnx.ModelProto:
    size, out, scale = case
    by_sizes = case in BY_SIZES
    node = onnx.helper.make_node(
        "Resize",
        ["x", "", "", "sizes"] if by_sizes else ["x", "", "scales"],
        ["y"],
        mode=mode,
        coordinate_transformation_mode=coordinates,
        nearest_mode=nearest,
    )
    target = onnx.helper.make_tensor("scales", onnx.TensorProto.FLOAT, [3], [1.0, 1.0, scale])
    if by_sizes:
        target = onnx.helper.make_tensor("sizes", onnx.TensorProto.INT64, [3], [1, 1, out])
    graph = onnx.helper.make_graph(
        [node],
        "resize",
        [onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [1, 1, size])],
        [onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)],
        [target],
    )
    return onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 19)], ir_version=9)


def values(size: int) -> NDArray[np.float32]:
    return np.random.default_rng(size).standard_normal(size).astype(np.float32)


def by_runtime(model: onnx.ModelProto, size: int) -> NDArray[np.float32]:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return np.asarray(session.run(None, {"x": values(size)[None, None]})[0], np.float32).reshape(-1)


def by_reference(model: onnx.ModelProto, size: int) -> NDArray[np.float32]:
    outputs = ReferenceEvaluator(model).run(None, {"x": values(size)[None, None]})
    return np.asarray(next(iter(outputs)), np.float32).reshape(-1)


def nearest_values(case: Case, coordinates: str, nearest: str) -> NDArray[np.float32]:
    size, out, scale = case
    return values(size)[[source for (source,) in nearest_axis(size, out, scale, coordinates, nearest)]]


def linear_values(case: Case, coordinates: str) -> NDArray[np.float32]:
    size, out, scale = case
    sources, weights = linear_axis(size, out, scale, coordinates)
    products = values(size)[np.array(sources)] * np.array(weights, np.float32)
    result: NDArray[np.float32] = products.sum(axis=1)
    return result


@pytest.mark.parametrize("coordinates", COORDINATE_MODES)
@pytest.mark.parametrize("nearest", NEAREST_MODES)
def test_nearest_reads_the_rows_that_onnxruntime_reads(coordinates: str, nearest: str) -> None:
    for case in [*BY_SIZES, *BY_SCALES]:
        expected = by_runtime(resize(case, "nearest", coordinates, nearest), case[0])
        np.testing.assert_array_equal(nearest_values(case, coordinates, nearest), expected, err_msg=str(case))


@pytest.mark.parametrize("coordinates", COORDINATE_MODES)
def test_linear_agrees_with_onnxruntime(coordinates: str) -> None:
    for case in [*BY_SIZES, *BY_SCALES]:
        expected = by_runtime(resize(case, "linear", coordinates), case[0])
        np.testing.assert_allclose(linear_values(case, coordinates), expected, rtol=0, atol=1e-6, err_msg=str(case))


@pytest.mark.parametrize("coordinates", COORDINATE_MODES)
def test_linear_agrees_with_the_reference(coordinates: str) -> None:
    for case in BY_SIZES:
        expected = by_reference(resize(case, "linear", coordinates), case[0])
        np.testing.assert_allclose(linear_values(case, coordinates), expected, rtol=0, atol=3e-6, err_msg=str(case))


@pytest.mark.parametrize("coordinates", ["half_pixel", "asymmetric", "align_corners"])
@pytest.mark.parametrize("nearest", NEAREST_MODES)
def test_nearest_agrees_with_the_reference_at_powers_of_two(coordinates: str, nearest: str) -> None:
    for size, out in itertools.product((2, 4, 8, 16), repeat=2):
        case = (size, out, out / size)
        expected = by_reference(resize(case, "nearest", coordinates, nearest), size)
        np.testing.assert_array_equal(nearest_values(case, coordinates, nearest), expected, err_msg=str(case))


def test_linear_weights_sum_to_one_and_read_no_row_for_nothing() -> None:
    for (size, out, scale), coordinates in itertools.product([*BY_SIZES, *BY_SCALES], COORDINATE_MODES):
        sources, weights = linear_axis(size, out, scale, coordinates)
        assert np.array(sources).shape == np.array(weights).shape == (out, 2)
        np.testing.assert_allclose(np.array(weights).sum(axis=1), 1.0, atol=1e-6)
        for (first, second), (_, weight) in zip(sources, weights, strict=True):
            assert 0 <= first <= second < size
            assert (first == second) == (weight == 0.0)


@pytest.mark.parametrize("build", [nearest_axis, linear_axis])
def test_unknown_coordinate_mode(build: type[object]) -> None:
    with pytest.raises(ExportError) as error:
        build(4, 8, 2.0, "tf_crop_and_resize")  # type: ignore[call-arg]
    assert str(error.value) == (
        "Expected coordinate_transformation_mode of Resize to be one of half_pixel, pytorch_half_pixel, "
        "half_pixel_symmetric, asymmetric, align_corners, got 'tf_crop_and_resize'; keep such a Resize dense or change "
        "the attribute in the model."
    )


def test_unknown_nearest_mode() -> None:
    with pytest.raises(ExportError) as error:
        nearest_axis(4, 8, 2.0, "asymmetric", "round")
    assert str(error.value) == (
        "Expected nearest_mode of Resize to be one of round_prefer_floor, round_prefer_ceil, floor, ceil, got 'round'; "
        "keep such a Resize dense or change the attribute in the model."
    )
