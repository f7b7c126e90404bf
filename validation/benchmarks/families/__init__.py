"""Benchmarks of every family of models that exports: what edits cost, against what they should."""

from __future__ import annotations

__all__ = ["main"]

from retouch.validation.benchmarks.families._main import main
