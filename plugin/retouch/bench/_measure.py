"""Times edits of several sizes against the full model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict

from numpy.typing import NDArray

from retouch.bundle import Bundle
from retouch.calibrate import Sample, block_region, interleaved, open_full_model, sample_feeds
from retouch.engines.ort import OrtEngine, Provider, WeightStorage
from retouch.region import Region, RegionPolicy
from retouch.session import EditSession, GroupNormMode, Report

DEFAULT_AREAS = (0.02, 0.05, 0.1, 0.25, 0.5, 1.0)


class Measurement(TypedDict):
    """One row of a benchmark: medians in milliseconds of CPU time of the process, unless the name says otherwise.

    Attributes:
        case: what was edited.
        area: share of the editable positions inside the region.
        rows: per grid id, the number of active rows.
        base_ms: the full model: the bundle's, or the original where that is faster.
        edit_ms: the edit, as its caller waits for it.
        ratio: ``edit_ms`` / ``base_ms``.
        wall_ratio: the same of wall times.
        path: ``edit`` or ``dense``.
        flop_ratio: share of the full model's FLOPs that the edit graph computes.
        base_wall_ms: wall time of the full model.
        edit_wall_ms: wall time of the edit.
        bundle_ms: the bundle's full model.
        original_ms: the original model, if it was given.
        index_ms: wall time of the index inputs, once per region.
        prep_ms: wall time of the prepared inputs, once per base run and conditions.
    """

    case: str
    area: float
    rows: dict[str, int]
    base_ms: float
    edit_ms: float
    ratio: float
    wall_ratio: float
    path: str
    flop_ratio: float
    base_wall_ms: float
    edit_wall_ms: float
    bundle_ms: float
    original_ms: float | None
    index_ms: float
    prep_ms: float


@dataclass(frozen=True)
class _Bench:
    """What the sizes have in common."""

    session: EditSession
    run: str
    changed: Mapping[str, NDArray[Any]]
    full: Mapping[str, Callable[[], object]]
    repeats: int


def measure(
    bundle: Bundle | str | Path,
    areas: Sequence[float] = DEFAULT_AREAS,
    *,
    threads: int | None = 1,
    policy: str | RegionPolicy = "exact",
    group_norm: GroupNormMode = "cached",
    weights: WeightStorage | str = WeightStorage.FLOAT32,
    providers: Sequence[Provider] | None = None,
    original: str | Path | None = None,
    feeds: Mapping[str, NDArray[Any]] | None = None,
    regions: Mapping[str, Region] | None = None,
    fallback: bool = True,
    repeats: int = 9,
    progress: Callable[[str], None] | None = None,
) -> list[Measurement]:
    """One measurement per case: an edit in turn with the full model, in one process.

    The cases are centred blocks of the areas, then the regions.

    Args:
        bundle: the bundle, or its directory.
        areas: shares of the editable positions.
        threads: threads per run; ``None`` leaves the choice to the engine.
        policy: how far around the block an edit computes.
        group_norm: how GroupNorm sees the edits.
        weights: how edits keep weights; the full model has its own.
        providers: execution providers by preference; ``None`` means the CPU.
        original: the model that was exported; then ratios are to the faster of it and the bundle's full model.
        feeds: what to feed; ``None`` means noise and middling conditions.
        regions: further regions, by name, each with a policy of its own.
        fallback: whether edits may take the dense fallback.
        repeats: timed rounds per case.
        progress: called with a line before every case.

    Raises:
        RegionError: an area is not above 0 and at most 1.
    """
    opened = bundle if isinstance(bundle, Bundle) else Bundle.open(bundle)
    manifest = opened.manifest
    fed = dict(feeds or sample_feeds(manifest))
    dims = manifest.grid(manifest.editable.grid).dims
    cases = {f"{100 * area:g} %": block_region(dims, area, policy) for area in areas} | dict(regions or {})
    full = _full_models(OrtEngine(providers, threads), opened, original, fed)
    with EditSession(opened, providers, threads, group_norm, weights=weights) as session:
        changed = {manifest.editable.input: sample_feeds(manifest, seed=1)[manifest.editable.input]}
        bench = _Bench(session, session.base(fed).id, changed, full, repeats)
        return _measure_all(bench, cases, fed, fallback=fallback, say=progress or (lambda _: None))


def _measure_all(
    bench: _Bench,
    cases: Mapping[str, Region],
    feeds: Mapping[str, NDArray[Any]],
    *,
    fallback: bool,
    say: Callable[[str], None],
) -> list[Measurement]:
    measurements = []
    for case, region in cases.items():
        say(case)
        measurements.append(_measure(bench, case, region, fallback=fallback))
    # Last, because it leaves the index inputs of a region behind.
    prep_ms = _time_preparation(bench.session, feeds, next(iter(cases.values()))) if cases else 0.0
    for measurement in measurements:
        measurement["prep_ms"] = prep_ms
    return measurements


def _full_models(
    engine: OrtEngine, bundle: Bundle, original: str | Path | None, feeds: Mapping[str, NDArray[Any]]
) -> dict[str, Callable[[], object]]:
    own = [output.tensor.name for output in bundle.manifest.outputs]
    models = {"bundle": open_full_model(engine, bundle.path / bundle.manifest.base_file, own, feeds)}
    if original is not None:
        models["original"] = open_full_model(engine, Path(original), None, feeds)
    return models


def _time_preparation(session: EditSession, feeds: Mapping[str, NDArray[Any]], region: Region) -> float:
    """Wall time in ms of the prepared inputs: of the second run, because the first opens the graph."""
    seconds = 0.0
    for _ in range(2):
        run = session.base(feeds)
        seconds = session.edit(run, region=region, fallback=False).report.seconds.prepare
        session.drop(run)
    return 1e3 * seconds


def _measure(bench: _Bench, case: str, region: Region, *, fallback: bool) -> Measurement:
    def edit() -> Report:
        return bench.session.edit(bench.run, bench.changed, region=region, fallback=fallback).report

    first = edit()
    samples = interleaved({**bench.full, "edit": edit}, bench.repeats)
    return _row(case, region, first, samples)


def _row(case: str, region: Region, first: Report, samples: Mapping[str, Sample]) -> Measurement:
    edit, bundle, original = samples["edit"], samples["bundle"], samples.get("original")
    base = bundle if original is None else min(bundle, original, key=lambda sample: sample.cpu_ms)
    return Measurement(
        case=case,
        area=region.area,
        rows=dict(first.active_rows),
        base_ms=base.cpu_ms,
        edit_ms=edit.cpu_ms,
        ratio=edit.cpu_ms / base.cpu_ms,
        wall_ratio=edit.wall_ms / base.wall_ms,
        path=first.path,
        flop_ratio=first.flop_ratio,
        base_wall_ms=base.wall_ms,
        edit_wall_ms=edit.wall_ms,
        bundle_ms=bundle.cpu_ms,
        original_ms=None if original is None else original.cpu_ms,
        index_ms=1e3 * first.seconds.index,
        prep_ms=0.0,
    )
