"""ONNX Runtime as an engine. Implement nothing here."""

from __future__ import annotations

__all__ = ["OrtEngine", "Provider"]

from retouch.engines.ort._engine import OrtEngine, Provider
