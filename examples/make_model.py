"""Writes a small denoiser with random weights, and the bundle beside it: python make_model.py model.onnx."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import onnx

from retouch.export import ExportOptions, export_onnx

MODEL = """
<ir_version: 10, opset_import: ["" : 18]>
denoiser (float[1,4,32,32] sample, int64[1] timestep, float[1,16] prompt) => (float[1,4,32,32] noise)
    <float thousand = {1000}, int64[4] column = {1, 16, 1, 1}> {
    time = Cast<to = 1>(timestep)
    share = Div(time, thousand)
    scaled = Mul(prompt, share)
    condition = Reshape(scaled, column)
    hidden = Conv<pads = [1, 1, 1, 1]>(sample, w_in)
    sum = Add(hidden, condition)
    gate = Sigmoid(sum)
    active = Mul(sum, gate)
    noise = Conv<pads = [1, 1, 1, 1]>(active, w_out)
}
"""


def main(path: Path) -> None:
    """Writes the model, and exports it."""
    model = onnx.parser.parse_model(MODEL)
    generator = np.random.default_rng(0)
    for name, shape in {"w_in": (16, 4, 3, 3), "w_out": (4, 16, 3, 3)}.items():
        weights = (0.2 * generator.standard_normal(shape)).astype(np.float32)
        model.graph.initializer.append(onnx.numpy_helper.from_array(weights, name))
    onnx.save(model, path)
    export_onnx(path, path.with_suffix(".bundle"), ExportOptions(editable="sample", axes=(2, 3)))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
