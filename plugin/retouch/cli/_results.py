"""Results on disk and on standard output."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import typer
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from retouch.cli._images import Range, write_previews
from retouch.errors import ResultFileError
from retouch.files import replace_text
from retouch.states import FileNames, write_array

STANDARD_OUTPUT = "-"
JSON_HELP = "Also write the figures as JSON to a file; - is standard output, and the table goes to standard error."


def result_console(json_target: str | None) -> Console:
    """The console for tables: standard output, or standard error if standard output is to hold JSON."""
    return Console(stderr=json_target == STANDARD_OUTPUT)


def write_json(target: str | None, value: object) -> None:
    """Writes JSON to a file, to standard output for ``-``, or nowhere.

    Raises:
        ResultFileError: the file cannot be written.
    """
    if target is None:
        return
    text = json.dumps(value, indent=1, allow_nan=False)
    if target == STANDARD_OUTPUT:
        typer.echo(text)
        return
    try:
        replace_text(Path(target), f"{text}\n")
    except (OSError, ValueError) as error:  # a path like "." has no name
        raise ResultFileError(
            f"Expected to write {target}, got: {error}. Give a file in a folder that exists and may be written to."
        ) from error


def report_table(report: object, **more: str) -> Table:
    """A report's lines, each a label and a text, as a table; behind further ones, by their labels."""
    table = Table(show_header=False)
    for label, text in more.items():
        table.add_row(label, text)
    for line in str(report).splitlines():
        label, _, text = line.partition("  ")
        table.add_row(label.strip(), text.strip())
    return table


def output_stems(outputs: Iterable[str]) -> list[str]:
    """The names of the outputs' files, without their endings."""
    names = FileNames()
    return [names.unique(output) for output in outputs]


def write_outputs(folder: Path, outputs: Mapping[str, NDArray[Any]], levels: Range) -> None:
    """Writes every output as a .npy file, and beside it a .png of those that look like images."""
    for stem, array in zip(output_stems(outputs), outputs.values(), strict=True):
        write_array(folder / f"{stem}.npy", array)
        write_previews(folder, stem, array, levels)
