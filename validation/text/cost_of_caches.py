"""What caches of full attention cost on a larger network: ``python -m retouch.validation.text.cost_of_caches``."""

from __future__ import annotations

import typer

from retouch.validation.text import cost_of_caches_main

if __name__ == "__main__":
    typer.run(cost_of_caches_main)
