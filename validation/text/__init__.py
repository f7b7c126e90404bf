"""Texts on ONNX Runtime against the same network in torch, and completions of patterns."""

from __future__ import annotations

__all__ = ["PatternScore", "main", "patterns_main", "score_patterns"]

from retouch.validation.text._measure import main
from retouch.validation.text._patterns import PatternScore, patterns_main, score_patterns
