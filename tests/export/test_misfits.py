"""Sizes that do not fit a model get an error that names sizes that do."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

from retouch.errors import ExportError, ModelError
from retouch.export import ExportOptions, export_onnx

UNET = """
<ir_version: 10, opset_import: ["" : 18]>
unet (float[1,3,h,w] x) => (float[1,3,h,w] y) <float[4] twice = {1, 1, 2, 2}> {
    a = Conv<pads = [1, 1, 1, 1]>(x, first)
    b = Conv<pads = [1, 1, 1, 1], strides = [2, 2]>(a, down)
    c = Conv<pads = [1, 1, 1, 1], strides = [2, 2]>(b, down)
    d = Resize<mode = "nearest", coordinate_transformation_mode = "asymmetric", nearest_mode = "floor">(c, "", twice)
    e = Concat<axis = 1>(d, b)
    f = Conv<pads = [1, 1, 1, 1]>(e, join)
    g = Resize<mode = "nearest", coordinate_transformation_mode = "asymmetric", nearest_mode = "floor">(f, "", twice)
    i = Add(g, a)
    y = Conv<pads = [1, 1, 1, 1]>(i, last)
}
"""
SHAPES = {"first": (4, 3, 3, 3), "down": (4, 4, 3, 3), "join": (4, 8, 3, 3), "last": (3, 4, 3, 3)}


@pytest.fixture(scope="module")
def unet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    model = onnx.parser.parse_model(UNET)
    for name, shape in SHAPES.items():
        weights = np.random.default_rng(0).standard_normal(shape, dtype=np.float32)
        model.graph.initializer.append(onnx.numpy_helper.from_array(weights, name))
    path = tmp_path_factory.mktemp("unet") / "unet.onnx"
    onnx.save(model, path)
    return path


@pytest.mark.parametrize(
    ("fix", "advice"),
    [
        ({"h": 10, "w": 12}, "Pass --fix h=8 or 12."),
        ({"h": 8, "w": 3}, "Pass --fix w=4."),
        ({"h": 9, "w": 13}, "Pass --fix h=8 or 12, w=12 or 16."),
    ],
)
def test_skip_connections_that_do_not_meet(
    unet: Path, tmp_path: Path, fix: dict[str, int], advice: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ModelError, match=r"do not meet: .* multiples of 4\. ") as caught:
        export_onnx(unet, tmp_path / "b", ExportOptions(fix=fix))
    assert str(caught.value).endswith(advice)
    assert "Traceback" not in capfd.readouterr().err


def test_sizes_that_meet(unet: Path, tmp_path: Path) -> None:
    assert export_onnx(unet, tmp_path / "b", ExportOptions(fix={"h": 8, "w": 12})).manifest.coverage == 1.0


def test_sizes_that_no_memory_holds(unet: Path, tmp_path: Path) -> None:
    with pytest.raises(ExportError, match=r"With h=400000, w=100000 .* takes \d+ GiB, expected at most a 4th"):
        export_onnx(unet, tmp_path / "b", ExportOptions(fix={"h": 400000, "w": 100000}))
