"""The trained terrain UNet becomes engines of TensorRT-RTX: base and edit graphs, in both precisions."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from retouch.export import ExportOptions, export_onnx
from retouch.trt_plugins import BuildOptions, Target, build
from retouch.validation.reference_models import terrain

needs_package = pytest.mark.skipif(
    importlib.util.find_spec("terrain_diffusion") is None, reason="adaptive-terrain-diffusion is not installed"
)


@needs_package
@pytest.mark.slow
@pytest.mark.parametrize("precision", ["float32", "float16"])
def test_base_and_edit_graphs_become_engines(precision: str, tmp_path: Path) -> None:
    options = ExportOptions(editable="noisy", axes=(2, 3), precision=precision, verify=False)
    bundle = export_onnx(terrain(), tmp_path / "bundle", options)
    made = build(bundle, BuildOptions(Target.TENSORRT_RTX, rows=("2%",), group_norm=("cached",)))
    layers = {engine.spec.graph: engine.layers or 0 for engine in made}
    assert layers["base.onnx"] > 5000 and layers["edit.onnx"] > 2000
    assert {engine.spec.precision for engine in made} == {precision}
    (profile,) = made[-1].spec.profiles
    assert profile.rows == round(0.02 * 128 * 128)
