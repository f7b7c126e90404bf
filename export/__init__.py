"""From an ONNX model to a bundle: clean-up, analysis, rewriting, verification."""

from __future__ import annotations

__all__ = ["ExportOptions", "export_onnx", "supported_operators"]

from retouch.export.pipeline import ExportOptions, export_onnx
from retouch.export.rules import supported_operators
