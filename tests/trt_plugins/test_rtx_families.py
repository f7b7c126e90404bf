"""Every family's base and edit graphs are taken by TensorRT-RTX's parser and become engines, in both precisions."""

from __future__ import annotations

from pathlib import Path

import pytest

from retouch.export import ExportOptions, export_onnx
from retouch.trt_plugins import BuildOptions, Target, build
from retouch.validation.reference_models import export_reference

OPTIONS = BuildOptions(Target.TENSORRT_RTX, rows=("10%",), group_norm=("cached",))


@pytest.mark.parametrize(
    ("name", "precision"),
    [
        ("dit_tiny", "float32"),
        ("dit_tiny", "float16"),
        ("llada_tiny", "float32"),
        ("llada_tiny", "float16"),
        pytest.param("unet2d_condition_tiny", "float16", marks=pytest.mark.slow),
    ],
)
def test_base_and_edit_graphs_become_engines(name: str, precision: str, reference_models: Path, tmp_path: Path) -> None:
    options = ExportOptions(precision=precision, verify=False)
    bundle = export_onnx(export_reference(name, reference_models), tmp_path / "bundle", options)
    made = build(bundle, OPTIONS)
    assert {"base.onnx", "edit.onnx"} <= {engine.spec.graph for engine in made}
    for engine in made:
        assert engine.spec.precision == precision
        assert engine.layers is not None and engine.layers > 50
    (profile,) = made[-1].spec.profiles
    grid = bundle.manifest.grid(bundle.manifest.editable.grid)
    assert profile.rows == round(grid.rows / 10)
    assert any(least < usual for least, usual, _ in profile.dims.values())
