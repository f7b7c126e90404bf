"""Where caches of block diffusion pay: ``python -m retouch.validation.text.efficiency``."""

from __future__ import annotations

import typer

from retouch.validation.text import efficiency_main

if __name__ == "__main__":
    typer.run(efficiency_main)
