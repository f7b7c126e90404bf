"""Where texts and what they took go."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import typer

from retouch.cli._results import STANDARD_OUTPUT, write_json
from retouch.cli._steps import progress_console
from retouch.text import EditReport, TextReport
from retouch.text.full_attention import RowsReport


def deliver_text(
    text: str, tokens: Sequence[int], report: TextReport | EditReport | RowsReport, json_file: str | None, **more: str
) -> None:
    """A text to standard output, what it took to standard error, and both to where JSON is asked for.

    Args:
        text: the text; token ids take its place where there is no tokenizer.
        tokens: its tokens.
        report: what it took.
        json_file: where JSON goes.
        more: further members of it.
    """
    write_json(json_file, {**more, "text": text, "tokens": list(tokens), "report": dataclasses.asdict(report)})
    shown = text or " ".join(map(str, tokens))
    if json_file != STANDARD_OUTPUT:
        typer.echo(shown, nl=not shown.endswith("\n"))
    progress_console().print(str(report), highlight=False, soft_wrap=True, markup=False)
