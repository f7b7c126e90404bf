"""Edits of every kind and area under each mode, against full recomputations."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from retouch.bundle import Bundle, MomentsSpec
from retouch.calibrate import block_region, calibrate_moments, interleaved, relative_error
from retouch.region import DEFAULT_POLICY, Region
from retouch.session import GROUP_NORM_MODES, MOMENTS, EditSession, Moments, Report, Result, Run
from retouch.validation.moments._subjects import KINDS, Array, Kind, Subject

AREAS = (0.05, 0.156, 0.3)


@dataclass(frozen=True)
class Study:
    """How much is measured.

    Attributes:
        examples: base runs that modes are calibrated with.
        bases: base runs that are edited.
        areas: shares of the positions that the centred square patches take.
        rounds: timed rounds per mode.
    """

    examples: int = 30
    bases: int = 6
    areas: tuple[float, ...] = AREAS
    rounds: int = 15


@dataclass(frozen=True)
class Sample:
    """One edit.

    Attributes:
        model: name of the subject.
        kind: what the patch is filled with.
        area: share of the positions that it takes.
        base: number of the base run.
        cached: error with those moments, relative to the change inside the patch.
        corrected: error with those.
        auto: error of what ``auto`` computed.
        taken: the moments that it took.
        expected: the error that its report foresaw.
    """

    model: str
    kind: Kind
    area: float
    base: int
    cached: float
    corrected: float
    auto: float
    taken: Moments
    expected: float


@dataclass(frozen=True)
class Timing:
    """CPU time of an edit with one thread, in ms, modes in turn.

    Attributes:
        model: name of the subject.
        area: share of the positions that the patch takes.
        cached: time with those moments.
        corrected: time with those.
        auto: time where the mode is chosen.
        choice: how long measuring what the edit moves, and choosing, took of that.
        taken: the moments that ``auto`` took.
    """

    model: str
    area: float
    cached: float
    corrected: float
    auto: float
    choice: float
    taken: Moments

    @property
    def extra(self) -> float:
        """What choosing adds to an edit, relative to the same edit without."""
        return self.choice / (self.auto - self.choice)


def calibrate_subject(
    bundle: Bundle, subject: Subject, study: Study, *, threads: int | None, progress: Callable[[str], None]
) -> MomentsSpec:
    """What edits of a subject's examples err under each mode, also written into the bundle."""
    with EditSession(bundle, threads=threads, group_norm="cached") as session:
        examples = list(subject.examples(session, study.examples))
    spec = calibrate_moments(bundle, examples, threads=threads, progress=progress)
    assert spec is not None, "the subjects have GroupNorms"
    return spec


def run_study(bundle: Bundle, subject: Subject, study: Study, *, threads: int | None = None) -> Iterator[Sample]:
    """The samples of a calibrated bundle, one at a time."""
    with EditSession(bundle, threads=threads) as session:
        for number in range(study.bases):
            run = session.base(subject.base(session, number))
            for area, kind in itertools.product(study.areas, KINDS):
                region, fed = _edit(bundle, subject, run, (area, kind, number))
                yield _sample(session, subject, run, (area, kind, number), region, fed)
            session.drop(run)


def time_modes(bundle: Bundle, subject: Subject, study: Study) -> Iterator[Timing]:
    """Times of edits with one thread, an area at a time."""
    with EditSession(bundle, threads=1) as session:
        run = session.base(subject.base(session, 0))
        for area in study.areas:
            region, fed = _edit(bundle, subject, run, (area, "alike", 0))
            edit = partial(session.edit, run, {bundle.manifest.editable.input: fed}, region=region, fallback=False)
            times, choice, taken = _timed(edit, study.rounds)
            yield Timing(subject.name, area, **times, choice=choice, taken=taken)


def _timed(edit: Callable[..., Result], rounds: int) -> tuple[dict[str, float], float, Moments]:
    """The time of every mode and of the choice, and the moments that ``auto`` takes."""
    reports: list[Report] = []

    def chosen() -> None:
        reports.append(edit(group_norm="auto").report)

    actions: dict[str, Callable[[], object]] = {mode: partial(edit, group_norm=mode) for mode in MOMENTS}
    samples = interleaved({**actions, "auto": chosen}, rounds)
    choice = 1e3 * float(np.median([report.seconds.choose for report in reports[-rounds:]]))
    return {mode: sample.cpu_ms for mode, sample in samples.items()}, choice, reports[-1].group_norm


def _edit(bundle: Bundle, subject: Subject, run: Run, what: tuple[float, Kind, int]) -> tuple[Region, Array]:
    area, kind, number = what
    editable = bundle.manifest.editable
    region = block_region(bundle.manifest.grid(editable.grid).dims, area, DEFAULT_POLICY)
    base = run.feeds[editable.input]
    return region, np.where(region.mask, subject.content(base, kind, number), base)


def _sample(
    session: EditSession, subject: Subject, run: Run, what: tuple[float, Kind, int], region: Region, fed: Array
) -> Sample:
    area, kind, number = what
    manifest = session.bundle.manifest
    change = {manifest.editable.input: fed}
    full = session.base({**run.feeds, **change}, record=False)
    results = {
        mode: session.edit(run, change, region=region, group_norm=mode, fallback=False) for mode in GROUP_NORM_MODES
    }
    errors = {
        mode: relative_error(manifest, region, run, result.outputs, full.outputs) or 0.0
        for mode, result in results.items()
    }
    full.close()
    report = results["auto"].report
    assert report.expected_error is not None, "calibrated bundles foresee"
    expected, taken = report.expected_error, report.group_norm
    return Sample(subject.name, kind, area, number, **errors, taken=taken, expected=expected)
