"""What is measured of one family."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from retouch.bench import Measurement, measure
from retouch.bundle import Manifest
from retouch.validation.benchmarks._figures import STOCK, THREADS
from retouch.validation.benchmarks._subject import Say
from retouch.validation.benchmarks.families._bundles import FamilyBundle
from retouch.validation.benchmarks.families._family import Family, bound


@dataclass(frozen=True)
class Edit:
    """One edit of a family.

    Attributes:
        area: share of the editable positions.
        flop_ratio: share of the full run's FLOPs that the edit computes.
        full_ms: CPU time of the full run.
        edit_ms: CPU time of the edit.
        ratio: one over the other.
        wall_ratio: the same of wall times on two threads.
        bound: the largest ratio that is as it should be.
        target: the ratio to stay under beside, if there is one.
        stock_ratio: the ratio without kernels of Retouch's own; measured where there is a target.
    """

    area: float
    flop_ratio: float
    full_ms: float
    edit_ms: float
    ratio: float
    wall_ratio: float
    bound: float
    target: float | None
    stock_ratio: float | None = None


@dataclass(frozen=True)
class Figures:
    """What was measured of one family.

    Attributes:
        name: the family's name on the command line.
        title: its name on the page.
        rows: positions of the grids that carry rows, largest first.
        gflop: GFLOP of one full run.
        coverage: share of the FLOPs that edits save on.
        dense: heavy nodes that edits compute whole.
        error: largest difference of an edit from the masked reference, relative to the output's scale.
        edits: the edits.
        key: what the bundle was made of.
        earlier: whether that is another state of the model or of the exporter than at the time of measuring.
        date: when it was measured.
    """

    name: str
    title: str
    rows: tuple[int, ...]
    gflop: float
    coverage: float
    dense: int
    error: float
    edits: tuple[Edit, ...]
    key: str
    earlier: bool
    date: str


def steps(family: Family) -> int:
    """The number of steps that :func:`take_figures` announces."""
    return (3 if family.targets else 2) * len(family.areas)


def take_figures(family: Family, made: FamilyBundle, repeats: int, say: Say) -> Figures:
    """Times on one and on two threads, for families with targets on stock kernels too."""
    manifest = made.bundle.manifest

    def timed(threads: int, providers: Sequence[str] | None = None) -> list[Measurement]:
        kernels = "" if providers is None else ", stock kernels"
        return measure(
            made.bundle,
            family.areas,
            threads=threads,
            providers=providers,
            original=made.original,
            feeds=made.feeds,
            fallback=False,
            repeats=repeats,
            progress=lambda case: say(f"{threads} thread{'s' if threads > 1 else ''}{kernels}: {case}"),
        )

    one, two = timed(1), timed(THREADS)
    stock: Sequence[Measurement | None] = timed(1, STOCK) if family.targets else [None] * len(one)
    checks = manifest.verification.items()
    return Figures(
        name=family.name,
        title=family.title,
        rows=_rows(manifest),
        gflop=manifest.flops / 1e9,
        coverage=manifest.coverage,
        dense=sum(row.plan == "densified" and row.flops > 0 for row in manifest.plan),
        error=max(error for check, error in checks if check.startswith("masked_reference")),
        edits=tuple(_edit(family, *cases) for cases in zip(family.areas, one, two, stock, strict=True)),
        key=made.key,
        earlier=made.earlier,
        date=datetime.now(tz=UTC).date().isoformat(),
    )


def _rows(manifest: Manifest) -> tuple[int, ...]:
    """Positions of the grids that heavy nodes compute on."""
    heavy = {row.grid for row in manifest.plan if row.flops > 0}
    return tuple(sorted({grid.rows for grid in manifest.grids if grid.id in heavy}, reverse=True))


def _edit(family: Family, area: float, one: Measurement, two: Measurement, stock: Measurement | None) -> Edit:
    return Edit(
        area=area,
        flop_ratio=one["flop_ratio"],
        full_ms=one["base_ms"],
        edit_ms=one["edit_ms"],
        ratio=one["ratio"],
        wall_ratio=two["wall_ratio"],
        bound=bound(one["flop_ratio"]),
        target=family.targets.get(area),
        stock_ratio=None if stock is None else stock["ratio"],
    )
