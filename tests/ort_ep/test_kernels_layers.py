from __future__ import annotations

import numpy as np
import onnx_ir as ir
import onnxruntime
import pytest

from retouch.validation.kernels import Layer, convolution, linear, measure, weight_errors


def test_a_convolution_of_rows_is_the_dense_one_at_those_rows() -> None:
    """The two forms that are timed against each other compute the same, as far as their operands are the same."""
    layer = convolution(4, 8, 5)
    assert layer.dense is not None
    cached = np.random.default_rng(1).standard_normal((64, 4)).astype(np.float32)
    active = np.flatnonzero(np.isin(np.arange(64), [18, 19, 20, 26, 27, 28]))[:5]
    places = [18, 19, 20, 26, 27]
    assert active.tolist() == places
    feeds = {**layer.feeds, "cached": cached, "rows": cached[places]}
    got = _run(layer.model, feeds)
    full = _run(layer.dense, {"x": cached.T.reshape(1, 4, 8, 8)})
    np.testing.assert_allclose(got, full.reshape(4, 64).T[places], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("layer", [linear(16, 24, 3), convolution(8, 8, 3)], ids=["linear", "convolution"])
def test_layers_are_measured_where_they_can_run(layer: Layer) -> None:
    speeds = measure(layer, repeats=1)
    assert set(speeds) == {"float32", "float16", "bfloat16", "stock"} | ({"dense"} if layer.dense else set())
    assert all(np.isfinite(speed) and speed > 0 for speed in speeds.values())


def test_what_shorter_weights_err_is_their_rounding() -> None:
    """Of a sum of many products with rounded weights, whose errors are independent: a third of the largest or so."""
    errors = weight_errors(linear(512, 24, 8))
    assert 2.0**-13 < errors["float16"] < 2.0**-12
    # Of bfloat16 the rows may be rounded, too.
    assert 7 < errors["bfloat16"] / errors["float16"] < 9 * 2**0.5


def _run(model: ir.Model, feeds: dict[str, np.ndarray]) -> np.ndarray:
    session = onnxruntime.InferenceSession(ir.serde.serialize_model(model).SerializeToString())
    return np.asarray(session.run(None, feeds)[0])
