"""Compares caches of models with full attention: ``python -m retouch.validation.text.caches``."""

from __future__ import annotations

import typer

from retouch.validation.text import caches_main

if __name__ == "__main__":
    typer.run(caches_main)
