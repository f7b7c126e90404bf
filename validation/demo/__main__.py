"""Runs the demonstration: ``python -m retouch.validation.demo --out DIR``."""

from __future__ import annotations

import typer

from retouch.validation.demo import main

if __name__ == "__main__":
    typer.run(main)
