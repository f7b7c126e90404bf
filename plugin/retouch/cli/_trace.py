"""``retouch doctor --trace-nan``: the first value of a full run that is not finite."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import Progress

from retouch.bundle import Bundle
from retouch.cli._feeds import read_feeds
from retouch.cli._images import Range
from retouch.diagnose import NonFinite, first_non_finite


def trace_non_finite(bundle: Path, feeds: list[str], levels: Range) -> dict[str, Any]:
    """What was found, for JSON and :func:`print_trace`: ``found`` is null if all values are finite."""
    opened = Bundle.open(bundle)
    given = read_feeds(feeds, opened.manifest.inputs, levels)
    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("look for NaN and infinity", total=1.0)
        found = first_non_finite(opened, given, progress=lambda share: bar.update(task, completed=share))
    return {"found": None if found is None else dataclasses.asdict(found)}


def print_trace(console: Console, trace: dict[str, Any]) -> None:
    """Says what was found."""
    if trace["found"] is None:
        console.print("all values of the full run are finite", highlight=False)
        return
    found = NonFinite(**trace["found"])
    where = f"{found.op} node {found.node!r} computes" if found.node else "the feeds have"
    console.print(
        escape(f"{where} {found.value!r}: {found.nan} NaN and {found.infinite} infinite of {found.size} elements"),
        highlight=False,
    )
    for name, (low, high) in found.reads.items():
        console.print(escape(f"  from {name!r}, which lies between {low:.4g} and {high:.4g}"), highlight=False)
