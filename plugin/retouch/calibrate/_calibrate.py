"""Measures a bundle's break-even and writes it into the manifest."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retouch.bundle import BreakEven, Bundle, Manifest, update_manifest
from retouch.calibrate._break_even import around_crossing, crossing
from retouch.calibrate._full_model import open_full_model
from retouch.calibrate._inputs import block_region, sample_feeds
from retouch.calibrate._timing import Sample, interleaved
from retouch.engines import Engine
from retouch.engines.ort import OrtEngine, Provider
from retouch.region import Region
from retouch.session import ENGINES, EditSession, start_engine

SHARES = (0.3, 0.5, 0.7, 0.85, 1.0)
_STEPS = 64
"""Sizes tried per region: finer than one step in a hundred does not change what is measured."""


def calibrate(
    bundle: Bundle | str | Path,
    *,
    providers: Sequence[Provider] | None = None,
    threads: int | None = None,
    feeds: Mapping[str, NDArray[Any]] | None = None,
    repeats: int = 5,
    progress: Callable[[str], None] | None = None,
    engine: str = ENGINES[0],
) -> BreakEven:
    """The break-even of a bundle on one engine, also written into its manifest.

    Times edits of centred blocks against the full model, in turn, by the CPU time of the process; on a GPU by the
    clock. Of several sizes it takes those between which edits become slower, found by halving.

    Args:
        bundle: the bundle, or its directory.
        providers: execution providers by preference; ``None`` means the CPU.
        threads: threads per run; ``None`` leaves the choice to the engine.
        feeds: what to feed; ``None`` means noise and middling conditions.
        repeats: timed rounds per size.
        progress: called with a line before every size.
        engine: what runs the graphs; see :class:`EditSession`. Engines that were built ahead of time have to take all
            rows (``--profile rows=all``).

    Raises:
        EngineError: an edit does not run, or no profile of an engine takes it.
    """
    opened = bundle if isinstance(bundle, Bundle) else Bundle.open(bundle)
    runs_on = start_engine(engine, opened, providers, threads)
    fed = feeds or sample_feeds(opened.manifest)
    with EditSession(opened, providers, threads, group_norm="cached", engine=engine) as session:
        points = _measure(session, runs_on, fed, repeats, progress)
    measured = BreakEven(runs_on.name, runs_on.threads, crossing(points), points)
    # Read again: another engine may have been calibrated meanwhile.
    current = Bundle.open(opened.path, check="size").manifest
    update_manifest(opened.path, current.replace(break_even={**current.break_even, runs_on.name: measured}))
    return measured


def _measure(
    session: EditSession,
    engine: Engine,
    feeds: Mapping[str, NDArray[Any]],
    repeats: int,
    progress: Callable[[str], None] | None,
) -> tuple[tuple[float, float], ...]:
    bundle = session.bundle
    manifest = bundle.manifest
    own = [output.tensor.name for output in manifest.outputs]
    full = open_full_model(engine, bundle.path / manifest.base_file, own, feeds)
    changed = {manifest.editable.input: sample_feeds(manifest, seed=1)[manifest.editable.input]}
    run = session.base(feeds)
    regions = _regions(manifest)
    shares = [_share(manifest, region) for region in regions]

    def ratio(number: int) -> float:
        if progress is not None:
            progress(f"{shares[number]:.0%} of the FLOPs")
        edit = _edit(session, run.id, changed, regions[number])
        times = interleaved({"full": full, "edit": edit}, repeats)
        return _ratio(times["edit"], times["full"], on_host=isinstance(engine, OrtEngine))

    return tuple((shares[number], found) for number, found in sorted(around_crossing(len(regions), ratio).items()))


def _ratio(edit: Sample, full: Sample, *, on_host: bool) -> float:
    return edit.cpu_ms / full.cpu_ms if on_host else edit.wall_ms / full.wall_ms


def _edit(session: EditSession, run: str, changed: Mapping[str, NDArray[Any]], region: Region) -> Callable[[], object]:
    return lambda: session.edit(run, changed, region=region, fallback=False)


def _regions(manifest: Manifest) -> list[Region]:
    """Blocks whose edits compute about the wanted shares of the FLOPs, each size once."""
    dims = manifest.grid(manifest.editable.grid).dims
    candidates = [block_region(dims, float(area)) for area in np.linspace(1 / _STEPS, 1, _STEPS)]
    shares = [_share(manifest, region) for region in candidates]
    # What is hoisted is left out of every edit, so shares are relative to what the largest edit computes.
    chosen = {int(np.argmin(np.abs(np.array(shares) - wanted * shares[-1]))) for wanted in SHARES}
    return [candidates[index] for index in sorted(chosen)]


def _share(manifest: Manifest, region: Region) -> float:
    active = region.active(manifest.grids, manifest.grid(manifest.editable.grid))
    return manifest.flop_ratio(active.counts())
