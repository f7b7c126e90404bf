"""Models and options that cannot be exported get an error that says what to do."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

from retouch.errors import ExportError, ModelError
from retouch.export import ExportOptions, export_onnx


def save(tmp_path: Path, graph: str, opset: int = 18) -> Path:
    path = tmp_path / "model.onnx"
    onnx.save(onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : {opset}]>\n{graph}'), path)
    return path


def test_absent_file(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="no model file"):
        export_onnx(tmp_path / "none.onnx", tmp_path / "bundle")


def test_not_onnx(tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(b"not a model")
    with pytest.raises(ModelError, match="not a"):
        export_onnx(tmp_path / "model.onnx", tmp_path / "bundle")


def test_absent_input(tmp_path: Path) -> None:
    path = save(tmp_path, "g (float[1,4,8,8] x) => (float[1,4,8,8] y) { y = Relu(x) }")
    with pytest.raises(ExportError, match="no input 'z'.*x"):
        export_onnx(path, tmp_path / "bundle", ExportOptions(editable="z"))


def test_ambiguous_input(tmp_path: Path) -> None:
    path = save(tmp_path, "g (float[1,4,8,8] a, float[1,4,8,8] b) => (float[1,4,8,8] y) { y = Add(a, b) }")
    with pytest.raises(ExportError, match="not clear.*--input"):
        export_onnx(path, tmp_path / "bundle")


def test_open_spatial_dims(tmp_path: Path) -> None:
    path = save(tmp_path, "g (float[N,4,H,8] x) => (float[N,4,H,8] y) { y = Relu(x) }")
    with pytest.raises(ModelError, match="leaves axis 2 open.*--fix H=64"):
        export_onnx(path, tmp_path / "bundle")
    bundle = export_onnx(path, tmp_path / "bundle", ExportOptions(fix={"H": 8, "N": 2}))
    assert bundle.manifest.inputs[0].shape == (2, 4, 8, 8)


def test_old_opset_is_converted(tmp_path: Path) -> None:
    path = save(tmp_path, "g (float[1,4,8,8] x) => (float[1,4,8,8] y) { y = Relu(x) }", opset=13)
    assert export_onnx(path, tmp_path / "bundle").manifest.model.opset == 18


def test_failed_export_keeps_the_old_bundle(tmp_path: Path) -> None:
    path = save(tmp_path, "g (float[1,4,8,8] x) => (float[1,4,8,8] y) { y = Relu(x) }")
    before = export_onnx(path, tmp_path / "bundle").fingerprint
    with pytest.raises(ExportError):
        export_onnx(path, tmp_path / "bundle", ExportOptions(editable="z"))
    from retouch.bundle import Bundle

    assert Bundle.open(tmp_path / "bundle").fingerprint == before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["bundle", "model.onnx"]
