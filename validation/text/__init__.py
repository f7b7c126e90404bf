"""Texts on ONNX Runtime against the same network in torch."""

from __future__ import annotations

__all__ = ["main"]

from retouch.validation.text._measure import main
