"""Exports or finds the families' bundles, measures them, and writes the page and the JSON file."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from retouch.files import replace_text
from retouch.validation.benchmarks._facts import facts_of
from retouch.validation.benchmarks._figures import THREADS
from retouch.validation.benchmarks._progress import model_progress
from retouch.validation.benchmarks.families._bundles import family_bundle, stamp_of
from retouch.validation.benchmarks.families._catalogue import FAMILIES, family
from retouch.validation.benchmarks.families._family import Family
from retouch.validation.benchmarks.families._figures import Edit, Figures, steps, take_figures
from retouch.validation.benchmarks.families._page import page

_COMMAND = "`make bench-families`"


def main(
    families: Annotated[
        str | None, typer.Option(help="Names of families, with commas between them; all if not given.")
    ] = None,
    build: Annotated[Path, typer.Option(help="Where bundles are kept from one time to the next.")] = Path(
        "build/families"
    ),
    page_file: Annotated[
        Path, typer.Option("--page", help="The page to write; its figures go into a JSON file beside it.")
    ] = Path("docs/families.md"),
    repeats: Annotated[int, typer.Option(min=1, help="Timed rounds per case.")] = 9,
    measure: Annotated[
        bool, typer.Option("--measure/--export-only", help="Only make the bundles; that may run beside other work.")
    ] = True,
    earlier: Annotated[
        bool, typer.Option("--earlier", help="Take bundles of an earlier state of the exporter; the page says which.")
    ] = False,
) -> None:
    """Measures what edits of every family cost, against what they should.

    Where families are named, the figures of the others stay as they were, unless their bundles were made anew since or
    this is another system.
    """
    chosen = [family(name) for name in families.split(",")] if families else list(FAMILIES.values())
    build.mkdir(parents=True, exist_ok=True)
    console = Console()
    if not measure:
        for item in chosen:
            _exported(item, build, console, earlier=earlier)
        return
    page_file.parent.mkdir(parents=True, exist_ok=True)
    written = page_file.with_suffix(".json")
    facts = facts_of(f"1 and {THREADS}", repeats, _COMMAND)
    done = _kept(written, facts, build) if families else {}
    for item in chosen:
        done[item.name] = _measured(item, build, repeats, console, earlier=earlier)
        # After every family, so that an interruption loses one and not all.
        figures = [done[name] for name in FAMILIES if name in done]
        replace_text(written, _as_json(facts, figures))
        replace_text(page_file, page(facts, figures))
    console.print(f"{page_file} and {written}", highlight=False)


def _exported(item: Family, build: Path, console: Console, *, earlier: bool) -> None:
    with model_progress(item.name, 1, console) as progress:
        made = family_bundle(item, build, progress.announce, earlier=earlier)
    console.print(f"  {item.name}: {made.bundle.path}", highlight=False)


def _measured(item: Family, build: Path, repeats: int, console: Console, *, earlier: bool) -> Figures:
    with model_progress(item.name, steps(item), console) as progress:
        made = family_bundle(item, build, progress.announce, earlier=earlier)
        figures = take_figures(item, made, repeats, progress.step)
    console.print(f"  {item.name}: {_ratios(figures.edits)}", highlight=False)
    return figures


def _ratios(edits: Iterable[Edit]) -> str:
    return ", ".join(f"{edit.area:.0%}: {edit.ratio:.3f} of {edit.bound:.3f}" for edit in edits)


def _as_json(facts: Mapping[str, object], figures: Sequence[Figures]) -> str:
    """The figures as text, a line per family: what was not measured again looks unchanged to version control."""
    lines = ",\n".join(json.dumps(asdict(one)) for one in figures)
    return f'{{"facts": {json.dumps(facts)}, "families": [\n{lines}\n]}}\n'


def _kept(written: Path, facts: Mapping[str, object], build: Path) -> dict[str, Figures]:
    """Figures of an earlier time that are as good as new: of the same system, and of no other bundle than is there."""
    if not written.is_file():
        return {}
    earlier = json.loads(written.read_text(encoding="utf-8"))
    if any(earlier["facts"].get(name) != facts[name] for name in facts if name != "date"):
        return {}
    figures = [_read(entry) for entry in earlier["families"]]
    return {one.name: one for one in figures if stamp_of(build, one.name) in ("", one.key)}


def _read(entry: Mapping[str, Any]) -> Figures:
    return Figures(**{**entry, "rows": tuple(entry["rows"]), "edits": tuple(Edit(**edit) for edit in entry["edits"])})
