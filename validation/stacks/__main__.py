"""Measures edits together and one by one: ``python -m retouch.validation.stacks``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from retouch.session import EditSession, GroupNormMode
from retouch.validation.benchmarks import calibrated_bundle, find_subject
from retouch.validation.stacks import measure_stack

_KERNELS: Mapping[str, Sequence[str] | None] = {"Retouch's": None, "stock": ("CPUExecutionProvider",)}


def main(
    models: Annotated[str, typer.Option(help="Reference models, with commas between them.")] = "dit_1024,ddpm_unet_64",
    areas: Annotated[str, typer.Option(help="Shares of the positions that an edit changes.")] = "0.005,0.02",
    count: Annotated[int, typer.Option(min=2, help="Number of edits.")] = 8,
    repeats: Annotated[int, typer.Option(min=1, help="Timed rounds.")] = 9,
    build: Annotated[Path, typer.Option(help="Where models and bundles are kept.")] = Path("build/bench"),
) -> None:
    """CPU time of several edits in one call over that of one call each: one thread, medians, in turn."""
    console = Console(highlight=False)
    console.print(
        "| model | kernels | moments | area | together, ms | alone, ms | ratio | error |\n"
        "|---|---|---|---|---|---|---|---|"
    )
    for name in models.split(","):
        bundle = calibrated_bundle(find_subject(name, build), build, console.print)
        for mode, (kernels, providers) in product(bundle.manifest.edits, _KERNELS.items()):
            moments: GroupNormMode = "corrected" if mode == "corrected" else "cached"
            with EditSession(bundle, providers, threads=1, group_norm=moments) as session:
                for area in map(float, areas.split(",")):
                    found = measure_stack(session, count, area, repeats)
                    times = f"{found.together.cpu_ms:.1f} | {found.alone.cpu_ms:.1f} | {found.ratio:.2f}"
                    console.print(f"| {name} | {kernels} | {mode} | {area:.1%} | {times} | {found.largest_error:.0e} |")


if __name__ == "__main__":
    typer.run(main)
