"""The command line: one function per command, errors in one line."""

from __future__ import annotations

import sys

import typer
from rich.console import Console

from retouch.cli._doctor import doctor
from retouch.cli._export import export
from retouch.cli._inspect import inspect
from retouch.errors import RetouchError

app = typer.Typer(
    name="retouch",
    help="Cheap edits of what a diffusion model made: export a model once, then recompute only what an edit touches.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.command()(export)
app.command()(inspect)
app.command()(doctor)


def main() -> None:
    """Runs the command line; exits with 1 and one message on an error that Retouch raises on purpose."""
    try:
        app()
    except RetouchError as error:
        Console(stderr=True).print(f"[bold red]error:[/] {type(error).__name__}: {error}", highlight=False)
        sys.exit(1)
