"""Options that several commands of texts have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from retouch.cli._results import JSON_HELP
from retouch.cli._run import THREADS_HELP
from retouch.errors import FeedError
from retouch.text import PRESETS

PRESET_HELP = f"How to sample: {', '.join(PRESETS)}."
_EDIT_HELP = "Replace a token where another has a confidence above this."
_PROMPT_HELP = "The text to continue; @FILE reads it from a file, ids:5,9,2 gives token ids."

BundlePath = Annotated[Path, typer.Argument(help="Directory of a text bundle.")]
Prompt = Annotated[str, typer.Option("--prompt", "-p", help=_PROMPT_HELP)]
Tokens = Annotated[int, typer.Option("--tokens", "-n", min=1, help="The most new tokens.")]
PresetName = Annotated[str, typer.Option("--preset", help=PRESET_HELP)]
Threshold = Annotated[float | None, typer.Option(help="Set a masked token above this confidence.")]
EditThreshold = Annotated[float | None, typer.Option(help=_EDIT_HELP)]
Temperature = Annotated[float | None, typer.Option(help="0 takes the likeliest token; above, tokens are drawn.")]
TopK = Annotated[int | None, typer.Option(min=1, help="Draw among so many likeliest tokens.")]
TopP = Annotated[float | None, typer.Option(help="Draw among tokens with so much probability together.")]
Seed = Annotated[int | None, typer.Option(min=0, help="Seed of what is drawn.")]
Threads = Annotated[int | None, typer.Option(min=1, help=THREADS_HELP)]
BenchThreads = Annotated[int, typer.Option(min=1, help="Threads per run.")]
Repeats = Annotated[int, typer.Option(min=1, help="Rounds that count, after one to warm up.")]
Json = Annotated[str | None, typer.Option("--json", metavar="FILE", help=JSON_HELP)]
Output = Annotated[Path | None, typer.Option("--output", "-o", help="Directory to keep the text in, for edits.")]


def prompt_of(given: str) -> str | list[int]:
    """The prompt that an option gives: itself, what a file holds, or token ids.

    Raises:
        FeedError: the file cannot be read, or what comes behind ``ids:`` are no numbers.
    """
    if given.startswith("@"):
        return _content(given[1:])
    if not given.startswith("ids:"):
        return given
    try:
        return [int(part) for part in given.removeprefix("ids:").split(",")]
    except ValueError as error:
        raise FeedError(f"Expected token ids like ids:5,9,2, got {given!r}.") from error


def _content(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise FeedError(f"Expected the file of a prompt, got {path!r} ({error}). Give a text file.") from error
