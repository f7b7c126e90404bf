"""Validations of bundles whose edits leave text tokens as the base run computed them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest

from retouch.export import ExportOptions, export_onnx
from retouch.validation.accuracy import Validation

# Image tokens 8x8 and three text tokens attend to each other twice, so that the text carries the edit on.
BODY = """
<ir_version: 10, opset_import: ["" : 18]>
joint (float[1,6,8,8] x, float[1,3,6] c) => (float[1,64,6] y)
<int64[2] sizes = {64, 3}, int64[3] flat = {1, 6, 64}>
{
    pixels = Reshape(x, flat)
    rows = Transpose<perm = [0, 2, 1]>(pixels)
    j0 = Concat<axis = 1>(rows, c)
    k0 = MatMul(j0, w)
    t0 = Transpose<perm = [0, 2, 1]>(k0)
    s0 = MatMul(j0, t0)
    p0 = Softmax<axis = -1>(s0)
    j1 = MatMul(p0, k0)
    t1 = Transpose<perm = [0, 2, 1]>(j1)
    s1 = MatMul(j1, t1)
    p1 = Softmax<axis = -1>(s1)
    j2 = MatMul(p1, j1)
    y, rest = Split<axis = 1>(j2, sizes)
}
"""


@pytest.mark.parametrize("text", ["frozen", "recompute"])
def test_the_oracle_leaves_text_as_the_bundle_does(text: str, tmp_path: Path, quick: Callable[..., Validation]) -> None:
    model = onnx.parser.parse_model(BODY)
    weight = np.random.default_rng(0).standard_normal((6, 6)).astype(np.float32)
    model.graph.initializer.append(onnx.numpy_helper.from_array(weight, "w"))
    onnx.save(model, tmp_path / "joint.onnx")
    options = ExportOptions(editable="x", axes=(2, 3), text=text)
    outcome = quick(export_onnx(tmp_path / "joint.onnx", tmp_path / text, options), areas=(0.25,))
    assert outcome.figures.passed, [fault for case in outcome.figures.cases for fault in case.faults]
    kinds = {case.kind for case in outcome.figures.cases}
    assert "drift" in kinds and ("conditions" in kinds) == (text == "recompute")
