"""``retouch text``: texts, edits of them, and what both cost."""

from __future__ import annotations

import typer

from retouch.cli._text_bench import bench
from retouch.cli._text_fill import cluster, fill
from retouch.cli._text_generate import edit, generate

text = typer.Typer(
    help="Texts by block diffusion: make one, edit spans of it, measure. Texts with full attention: fill them with "
    "an approximate cache.",
    no_args_is_help=True,
)
for _command in (generate, edit, bench, fill, cluster):
    text.command()(_command)
