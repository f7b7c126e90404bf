"""Benchmarks of the terrain model and the reference models: one page and one JSON file."""

from __future__ import annotations

__all__ = ["main"]

from retouch.validation.benchmarks._main import main
