"""What is measured of one model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from retouch.bench import Footprint, Measurement, box_region, measure, measure_footprint
from retouch.bundle import Bundle
from retouch.region import Region, RegionPolicy
from retouch.validation.benchmarks._subject import Say, Subject

BOX_DILATION = 4
PROCESSES = 5
THREADS = 2
STOCK = ("CPUExecutionProvider",)
"""Asked for by name, ONNX Runtime's own kernels run the same bundle alone."""


@dataclass(frozen=True)
class Figures:
    """What was measured of one model.

    Attributes:
        name: the model's name.
        gflop: GFLOP of one full run.
        coverage: share of the FLOPs that edits save on.
        break_even: share of the FLOPs from which on a full run is faster; above one if there is none.
        one_thread: times of edits on one thread.
        two_threads: the same on two.
        stock: the same on one thread without kernels of Retouch's own, of regions that are not everything.
        footprint: memory, start-up time and sizes.
    """

    name: str
    gflop: float
    coverage: float
    break_even: float | None
    one_thread: Sequence[Measurement]
    two_threads: Sequence[Measurement]
    stock: Sequence[Measurement]
    footprint: Footprint


def steps(subject: Subject, areas: Sequence[float]) -> int:
    """The number of steps that :func:`take_figures` announces."""
    return 2 * len(areas) + len(_parts(areas)) + 3 * len(subject.boxes) + 2 * PROCESSES


def take_figures(subject: Subject, bundle: Bundle, areas: Sequence[float], repeats: int, say: Say) -> Figures:
    """Times on one and on two threads and on stock kernels, then the footprint."""
    regions = _regions(subject, bundle)

    def timed(threads: int, areas: Sequence[float], providers: Sequence[str] | None = None) -> list[Measurement]:
        kernels = "" if providers is None else ", stock kernels"
        return measure(
            bundle,
            areas,
            threads=threads,
            providers=providers,
            original=subject.model,
            feeds=subject.feeds,
            regions=regions,
            repeats=repeats,
            progress=lambda case: say(f"{threads} thread{'s' if threads > 1 else ''}{kernels}: {case}"),
        )

    manifest = bundle.manifest
    measured = next(iter(manifest.break_even.values()), None)
    return Figures(
        name=subject.name,
        gflop=manifest.flops / 1e9,
        coverage=manifest.coverage,
        break_even=None if measured is None else measured.flop_ratio,
        one_thread=timed(1, areas),
        two_threads=timed(THREADS, areas),
        stock=timed(1, _parts(areas), STOCK),
        footprint=measure_footprint(bundle, original=subject.model, processes=PROCESSES, progress=say),
    )


def _parts(areas: Sequence[float]) -> list[float]:
    """Areas below everything: what an edit of everything costs on stock kernels is what the dense fallback costs."""
    return [area for area in areas if area < 1.0]


def _regions(subject: Subject, bundle: Bundle) -> Mapping[str, Region]:
    dims = bundle.manifest.grid(bundle.manifest.editable.grid).dims
    policy = RegionPolicy(dilation=BOX_DILATION)
    return {
        f"{height}x{width} patch, dilation {BOX_DILATION}": box_region(dims, (height, width), policy)
        for height, width in subject.boxes
    }
