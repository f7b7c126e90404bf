"""The command line: one function per command, errors without tracebacks."""

from __future__ import annotations

import typer
from rich.console import Console
from rich.text import Text
from typer.core import TyperGroup

from retouch.cli._bench import bench
from retouch.cli._build import build_command
from retouch.cli._doctor import doctor
from retouch.cli._edit import edit
from retouch.cli._export import export
from retouch.cli._image import image
from retouch.cli._inspect import inspect
from retouch.cli._run import run
from retouch.cli._text import text
from retouch.cli._validate import validate
from retouch.errors import BuildError, EngineMissingError, RetouchError, VerificationError

_USAGE = 2
_FAILURE = 1
_NOT_THE_CALLER = (BuildError, EngineMissingError, VerificationError)
"""What is right to ask for, but does not work out here: everything else that is raised on purpose is bad input."""


class _Commands(TyperGroup):
    """Commands whose errors are one message: what was expected, what was got, what to do."""

    def invoke(self, ctx: typer.Context) -> object:  # type: ignore[override]
        """Runs a command; exits with 2 on bad input and with 1 if something else goes wrong."""
        try:
            return super().invoke(ctx)
        except RetouchError as error:
            # As a text: messages hold brackets, which the console would take for markup.
            message = Text.assemble(("error: ", "bold red"), f"{type(error).__name__}: {error}")
            Console(stderr=True, soft_wrap=True).print(message, highlight=False)
            raise typer.Exit(_FAILURE if isinstance(error, _NOT_THE_CALLER) else _USAGE) from error
        except MemoryError as error:
            text = f"error: out of memory ({str(error) or 'no details'}). Give smaller sizes, or use a larger machine."
            Console(stderr=True, soft_wrap=True).print(Text(text, "bold red"), highlight=False)
            raise typer.Exit(_FAILURE) from error


app = typer.Typer(
    name="retouch",
    cls=_Commands,
    help="Cheap edits of what a diffusion model made: export a model once, run it once in full, then recompute only "
    "what an edit touches.",
    epilog="Start with: retouch export model.onnx -o model.bundle",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
for _command in (export, run, edit, bench, validate, inspect, doctor):
    app.command()(_command)
app.command("build")(build_command)
app.add_typer(image, name="image")
app.add_typer(text, name="text")
