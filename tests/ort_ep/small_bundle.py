"""A small model, exported, that has every kind of product."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx

from retouch import Bundle, Region
from retouch.export.pipeline import export_onnx

MODEL = """
<ir_version: 10, opset_import: ["" : 18]>
small (float[1,3,16,16] x) => (float[1,3,16,16] y) {
    a = Conv<pads = [1, 1, 1, 1]>(x, k3, b3)
    s = Sigmoid(a)
    g = Mul(a, s)
    h = Conv(g, k1)
    t = Add(g, h)
    y = Conv<pads = [1, 1, 1, 1]>(t, k2)
}
"""
REGION = Region.from_boxes([(3, 4, 8, 9)], shape=(16, 16))


def export_small(folder: Path) -> Bundle:
    """The bundle, in a folder of that one."""
    rng = np.random.default_rng(0)
    shapes = {"k3": (24, 3, 3, 3), "b3": (24,), "k1": (24, 24, 1, 1), "k2": (3, 24, 3, 3)}
    model = onnx.parser.parse_model(MODEL)
    for name, shape in shapes.items():
        weight = rng.standard_normal(shape).astype(np.float32) / np.float32(5)
        model.graph.initializer.append(onnx.numpy_helper.from_array(weight, name))
    onnx.save(model, folder / "small.onnx")
    return export_onnx(folder / "small.onnx", folder / "small.bundle")


def feed(seed: int) -> dict[str, np.ndarray]:
    return {"x": np.random.default_rng(seed).standard_normal((1, 3, 16, 16)).astype(np.float32)}
