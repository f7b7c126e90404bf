"""Small models in ONNX's text form, exported and verified."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import onnx
import pytest

from retouch.bundle import Bundle
from retouch.export import ExportOptions, export_onnx

Export = Callable[..., Bundle]


@pytest.fixture
def export(tmp_path: Path) -> Export:
    """Exports the graph in a text; its input x carries the positions on axes 2, 3 unless axes are given."""

    def run(body: str, *, axes: tuple[int, ...] = (2, 3), min_coverage: float = 0.0, opset: int = 18) -> Bundle:
        text = f'<ir_version: 10, opset_import: ["" : {opset}]>\n{body}'
        model = onnx.parser.parse_model(text)
        onnx.checker.check_model(model)
        path = tmp_path / "model.onnx"
        onnx.save(model, path)
        return export_onnx(path, tmp_path / "bundle", ExportOptions(editable="x", axes=axes, min_coverage=min_coverage))

    return run
