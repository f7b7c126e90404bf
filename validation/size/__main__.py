"""Measures exports of a large model: ``python -m retouch.validation.size``."""

from __future__ import annotations

import typer

from retouch.validation.size import main

if __name__ == "__main__":
    typer.run(main)
