"""Runs the benchmarks: ``python -m retouch.validation.benchmarks``."""

from __future__ import annotations

import typer

from retouch.validation.benchmarks import main

if __name__ == "__main__":
    typer.run(main)
