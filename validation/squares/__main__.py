"""Measures centred squares: ``python -m retouch.validation.squares``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from retouch.validation.benchmarks import calibrated_bundle, find_subject, table
from retouch.validation.squares import POLICIES, measure_squares


def main(
    model: Annotated[str, typer.Option(help="A reference model.")] = "ddpm_unet_256",
    areas: Annotated[str, typer.Option(help="Shares of the positions.")] = "0.012,0.05,0.1,0.156,0.3,0.5",
    policies: Annotated[str, typer.Option(help="Names of policies, with commas between them.")] = ",".join(POLICIES),
    repeats: Annotated[int, typer.Option(min=1, help="Timed rounds.")] = 3,
    build: Annotated[Path, typer.Option(help="Where models and bundles are kept.")] = Path("build/bench"),
) -> None:
    """CPU time of the full model over that of edits of centred squares: one thread, medians, in turn."""
    console = Console(highlight=False, soft_wrap=True)
    subject = find_subject(model, build)
    bundle = calibrated_bundle(subject, build, console.print)
    found = measure_squares(
        bundle, subject.model, [float(area) for area in areas.split(",")], policies.split(","), repeats
    )
    head = ("policy", "square", "FLOPs", "times as fast", "on stock kernels", "85 % of what FLOPs allow", "error")
    rows = [
        (
            cost.policy,
            f"{cost.area:.1%}",
            f"{cost.flop_ratio:.1%}",
            f"{1 / cost.ratio:.1f}",
            f"{1 / cost.stock_ratio:.1f}",
            f"{0.85 / cost.flop_ratio:.1f}",
            f"{cost.error:.1e}",
        )
        for cost in found
    ]
    console.print(table(head, rows))


if __name__ == "__main__":
    typer.run(main)
