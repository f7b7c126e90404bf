"""Measures texts against torch: ``python -m retouch.validation.text``."""

from __future__ import annotations

import typer

from retouch.validation.text import main

if __name__ == "__main__":
    typer.run(main)
