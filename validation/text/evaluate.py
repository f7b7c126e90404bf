"""Scores the trained networks: ``python -m retouch.validation.text.evaluate``."""

from __future__ import annotations

import typer

from retouch.validation.text import evaluate_main

if __name__ == "__main__":
    typer.run(evaluate_main)
