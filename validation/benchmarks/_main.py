"""Exports or finds the bundles, measures them, and writes the page and the JSON file."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from retouch.bench import Measurement
from retouch.files import replace_text
from retouch.validation.benchmarks._facts import facts_of
from retouch.validation.benchmarks._figures import THREADS, Figures, steps, take_figures
from retouch.validation.benchmarks._page import page
from retouch.validation.benchmarks._progress import model_progress
from retouch.validation.benchmarks._subject import TERRAIN, calibrated_bundle, find_subject

AREAS = (0.02, 0.05, 0.1, 0.25, 1.0)
MODELS = (TERRAIN, "ddpm_unet_64", "dit_1024", "llada_512")


def main(
    models: Annotated[str, typer.Option(help="Names of models, with commas between them.")] = ",".join(MODELS),
    build: Annotated[Path, typer.Option(help="Where bundles are kept from one time to the next.")] = Path(
        "build/bench"
    ),
    out: Annotated[Path, typer.Option(help="Where benchmarks.json goes.")] = Path("out/bench"),
    page_file: Annotated[Path, typer.Option("--page", help="The page to write.")] = Path("docs/benchmarks.md"),
    repeats: Annotated[int, typer.Option(min=1, help="Timed rounds per case.")] = 9,
) -> None:
    """Measures what edits cost, and what they need, on a trained model and on models of known architecture."""
    for folder in (build, out, page_file.parent):
        folder.mkdir(parents=True, exist_ok=True)
    console = Console()
    facts = facts_of(f"1 and {THREADS}", repeats, "`make bench`")
    done: list[Figures] = []
    for name in models.split(","):
        done.append(_measured(name, build, repeats, console))
        # After every model, so that an interruption loses one and not all.
        replace_text(out / "benchmarks.json", json.dumps({"facts": facts, "models": [asdict(item) for item in done]}))
        replace_text(page_file, page(facts, done))
    console.print(f"{page_file} and {out / 'benchmarks.json'}", highlight=False)


def _measured(name: str, build: Path, repeats: int, console: Console) -> Figures:
    subject = find_subject(name, build)
    with model_progress(name, steps(subject, AREAS), console) as progress:
        bundle = calibrated_bundle(subject, build, progress.announce)
        figures = take_figures(subject, bundle, AREAS, repeats, progress.step)
    console.print(f"  {name}: {_ratios(figures.one_thread)}", highlight=False)
    return figures


def _ratios(rows: Sequence[Measurement]) -> str:
    return ", ".join(f"{row['case']}: {row['ratio']:.3f}" for row in rows)
