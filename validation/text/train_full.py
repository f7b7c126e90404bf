"""Trains the network that caches are measured with: ``python -m retouch.validation.text.train_full``."""

from __future__ import annotations

import typer

from retouch.validation.text import train_full_main

if __name__ == "__main__":
    typer.run(train_full_main)
