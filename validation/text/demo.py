"""Completes code and edits it: ``python -m retouch.validation.text.demo``."""

from __future__ import annotations

import typer

from retouch.validation.text import demo_main

if __name__ == "__main__":
    typer.run(demo_main)
