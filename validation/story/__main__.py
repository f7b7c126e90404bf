"""Runs the story: ``python -m retouch.validation.story --out DIR``."""

from __future__ import annotations

import typer

from retouch.validation.story import main

if __name__ == "__main__":
    typer.run(main)
