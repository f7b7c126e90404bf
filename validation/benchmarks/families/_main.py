"""Exports or finds the families' bundles, measures them, and writes the page and the JSON file."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from retouch.files import replace_text
from retouch.validation.benchmarks._facts import facts_of
from retouch.validation.benchmarks._progress import model_progress
from retouch.validation.benchmarks.families._catalogue import FAMILIES, family
from retouch.validation.benchmarks.families._family import Family
from retouch.validation.benchmarks.families._figures import THREADS, Edit, Figures, measured, steps
from retouch.validation.benchmarks.families._page import page

_COMMAND = "`make bench-families`"


def main(
    families: Annotated[
        str | None, typer.Option(help="Names of families, with commas between them; all if not given.")
    ] = None,
    build: Annotated[Path, typer.Option(help="Where bundles are kept from one time to the next.")] = Path(
        "build/families"
    ),
    out: Annotated[Path, typer.Option(help="Where families.json goes.")] = Path("out/families"),
    page_file: Annotated[Path, typer.Option("--page", help="The page to write.")] = Path("docs/families.md"),
    repeats: Annotated[int, typer.Option(min=1, help="Timed rounds per case.")] = 9,
) -> None:
    """Measures what edits of every family cost, against what they should.

    Where families are named, the figures of the others stay as they were, unless what they were measured on changed.
    """
    chosen = [family(name) for name in families.split(",")] if families else list(FAMILIES.values())
    for folder in (build, out, page_file.parent):
        folder.mkdir(parents=True, exist_ok=True)
    written, console = out / "families.json", Console()
    facts = facts_of(f"1 and {THREADS}", repeats, _COMMAND)
    done = _kept(written, facts, build) if families else {}
    for item in chosen:
        done[item.name] = _measured(item, build, repeats, console)
        # After every family, so that an interruption loses one and not all.
        figures = [done[name] for name in FAMILIES if name in done]
        replace_text(written, json.dumps({"facts": facts, "families": [asdict(one) for one in figures]}))
        replace_text(page_file, page(facts, figures))
    console.print(f"{page_file} and {written}", highlight=False)


def _measured(item: Family, build: Path, repeats: int, console: Console) -> Figures:
    with model_progress(item.name, steps(item), console) as progress:
        figures = measured(item, build, repeats, progress.announce, progress.step)
    console.print(f"  {item.name}: {_ratios(figures.edits)}", highlight=False)
    return figures


def _ratios(edits: Iterable[Edit]) -> str:
    return ", ".join(f"{edit.area:.0%}: {edit.ratio:.3f} of {edit.bound:.3f}" for edit in edits)


def _kept(written: Path, facts: Mapping[str, object], build: Path) -> dict[str, Figures]:
    """Figures of an earlier time that are as good as new: on the same system, of the bundles that are there."""
    if not written.is_file():
        return {}
    earlier = json.loads(written.read_text(encoding="utf-8"))
    if any(earlier["facts"].get(name) != facts[name] for name in facts if name != "date"):
        return {}
    figures = [_read(entry) for entry in earlier["families"]]
    return {one.name: one for one in figures if _key(build, one.name) == one.key}


def _read(entry: Mapping[str, Any]) -> Figures:
    return Figures(**{**entry, "rows": tuple(entry["rows"]), "edits": tuple(Edit(**edit) for edit in entry["edits"])})


def _key(build: Path, name: str) -> str | None:
    stamp = build / f"{name}.key"
    return stamp.read_text(encoding="ascii") if stamp.is_file() else None
