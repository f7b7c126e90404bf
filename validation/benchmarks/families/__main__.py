"""Runs the benchmarks of families: ``python -m retouch.validation.benchmarks.families``."""

from __future__ import annotations

import typer

from retouch.validation.benchmarks.families import main

if __name__ == "__main__":
    typer.run(main)
