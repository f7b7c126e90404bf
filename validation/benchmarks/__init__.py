"""Benchmarks of the terrain model and the reference models: one page and one JSON file."""

from __future__ import annotations

__all__ = ["calibrated_bundle", "facts_of", "find_subject", "main", "table"]

from retouch.validation.benchmarks._facts import facts_of
from retouch.validation.benchmarks._main import main
from retouch.validation.benchmarks._page import table
from retouch.validation.benchmarks._subject import calibrated_bundle, find_subject
