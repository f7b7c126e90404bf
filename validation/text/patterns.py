"""Scores completions of patterns: ``python -m retouch.validation.text.patterns``."""

from __future__ import annotations

import typer

from retouch.validation.text import patterns_main

if __name__ == "__main__":
    typer.run(patterns_main)
