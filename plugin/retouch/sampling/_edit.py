"""Edits of a trajectory: the sampling loop over the rows of a region."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from retouch.errors import SamplingError
from retouch.region import Region
from retouch.sampling._change import Branch, Change, Latents
from retouch.sampling._conditions import Conditions
from retouch.sampling._generate import Callback, Progress, check_kept, drop
from retouch.sampling._states import MissingStates, Source, states_for
from retouch.sampling._trajectory import Step, Trajectory, TrajectoryReport
from retouch.session import EditRequest, GroupNormMode, Report, Result, Run


def edit(
    trajectory: Trajectory,
    region: Region,
    conditions: Conditions | None = None,
    *,
    seed: int | None = None,
    strength: float = 1.0,
    group_norm: GroupNormMode | None = None,
    record: bool = False,
    missing: MissingStates = MissingStates.ERROR,
    callback: Callback | None = None,
) -> Trajectory:
    """The trajectory with other conditions, or other noise, inside a region.

    At every step the latents outside the region are the base's, bit for bit, and the noise that a stochastic scheduler
    draws there is what the base drew. Inside, the loop is what a full recompute with the same frozen latents would be,
    up to what the region's policy leaves out.

    Args:
        trajectory: the base, which stays as it is.
        region: where, on the grid of the latents.
        conditions: what is asked for inside; ``None`` means what the base was asked for.
        seed: seed of other noise inside; ``None`` means the base's noise.
        strength: share of the steps that is computed, the last ones; the steps before them are the base's.
        group_norm: how GroupNorm sees the edit; ``None`` means as the session was told.
        record: whether the result will be edited further; then the steps that the base recorded keep their new states.
        missing: what to do where states of the base are gone.
        callback: called after every step. What it raises ends the edit, and nothing of it is kept.

    Raises:
        FeedError: the conditions do not fit the bundle.
        NonFiniteError: an output of the model holds NaN or infinity.
        RunError: states of the base are gone, or nothing was recorded.
        SamplingError: the region is not on the latents' grid, the strength is out of range, or the conditions need
            other calls than the base made.
    """
    change = Change(region, conditions, seed)
    options = _Options(strength, group_norm, record, missing, callback)
    return _Loop(trajectory, (change,), options).run()[0]


def edit_many(
    trajectory: Trajectory,
    changes: Sequence[Change],
    *,
    strength: float = 1.0,
    group_norm: GroupNormMode | None = None,
    record: bool = False,
    missing: MissingStates = MissingStates.ERROR,
    callback: Callback | None = None,
) -> list[Trajectory]:
    """Several edits of one trajectory, each as :func:`edit` would give it, in their order.

    They make each step together: calls with the same conditions are computed in one run (``Report.stacked``).
    """
    options = _Options(strength, group_norm, record, missing, callback)
    return _Loop(trajectory, tuple(changes), options).run() if changes else []


@dataclass(frozen=True)
class _Options:
    strength: float
    group_norm: GroupNormMode | None
    record: bool
    missing: MissingStates
    callback: Callback | None

    def start(self, steps: int) -> int:
        """The first step to compute."""
        if not 0 < self.strength <= 1:
            raise SamplingError(f"Expected a strength above 0 and at most 1, got {self.strength!r}.")
        return steps - max(1, round(self.strength * steps))


@dataclass
class _Loop:
    """The changes of one base, step by step."""

    base: Trajectory
    changes: tuple[Change, ...]
    options: _Options
    steps: list[list[Step]] = field(default_factory=list)
    sources: list[tuple[int, Source]] = field(default_factory=list)
    reports: list[list[tuple[Report, ...]]] = field(default_factory=list)

    def run(self) -> list[Trajectory]:
        """The edited trajectories."""
        begun = time.perf_counter()
        branches = [Branch(self.base, change) for change in self.changes]
        start = self.options.start(len(self.base.steps))
        self.steps = [list(self.base.steps[:start]) for _ in branches]
        self.reports = [[] for _ in branches]
        try:
            for branch in branches:
                branch.seek(start)
            for index in range(start, len(self.base.steps)):
                self._step(branches, index)
            check_kept(self._recorded(start))
        except BaseException:
            self._discard(start)
            raise
        seconds = time.perf_counter() - begun
        return [self._trajectory(place, branch, start, seconds) for place, branch in enumerate(branches)]

    def _step(self, branches: Sequence[Branch], index: int) -> None:
        source = states_for(self.base, index, branches[0].stepper, self.options.missing)
        try:
            results = self._results(branches, index, source)
            for place, (branch, calls) in enumerate(zip(branches, results, strict=True)):
                self._advance(place, branch, index, calls)
        finally:
            source.close()
        self.sources.append((index, source))
        if self.options.callback is not None:
            latents = tuple(branch.latents for branch in branches)
            self.options.callback(Progress(index, len(self.base.steps), latents))

    def _results(self, branches: Sequence[Branch], index: int, source: Source) -> list[list[Result]]:
        """Per branch, the results of a step's calls."""
        denoiser, step = self.base.denoiser, self.base.steps[index]
        # States of the step itself were recorded at its time: there is no need to say it again.
        moment = None if source.runs == step.runs or source.recomputed else step.time
        feeds = [
            denoiser.feeds(branch.stepper.scaled(branch.latents, index), moment, branch.conditions)
            for branch in branches
        ]
        calls = [
            self._call(run, [EditRequest(b.change.region, own[call]) for b, own in zip(branches, feeds, strict=True)])
            for call, run in enumerate(source.runs)
        ]
        return [list(own) for own in zip(*calls, strict=True)]

    def _call(self, run: Run, requests: Sequence[EditRequest]) -> list[Result]:
        session, mode = self.base.denoiser.session, self.options.group_norm
        if len(requests) > 1:
            return session.edit_many(run, requests, group_norm=mode)
        request, record = requests[0], self.options.record
        return [session.edit(run, request.feeds, region=request.region, group_norm=mode, record=record)]

    def _advance(self, place: int, branch: Branch, index: int, calls: Sequence[Result]) -> None:
        denoiser, step = self.base.denoiser, self.base.steps[index]
        prediction = denoiser.guided([call.outputs[denoiser.prediction] for call in calls], branch.conditions)
        before = branch.latents
        output = branch.advance(prediction, index)
        runs = self._committed(calls) if self.options.record and step.runs else ()
        self.steps[place].append(Step(index, step.time, before, output, runs))
        self.reports[place].append(tuple(call.report for call in calls))

    @staticmethod
    def _committed(calls: Sequence[Result]) -> tuple[Run, ...]:
        runs: list[Run] = []
        try:
            runs.extend(call.commit() for call in calls)
        except BaseException:
            drop(runs)
            raise
        return tuple(runs)

    def _discard(self, start: int) -> None:
        drop(self._recorded(start))

    def _recorded(self, start: int) -> list[Run]:
        """The runs that this loop has recorded."""
        return [run for steps in self.steps for step in steps[start:] for run in step.runs]

    def _trajectory(self, place: int, branch: Branch, start: int, seconds: float) -> Trajectory:
        staleness = tuple(source.staleness for _, source in self.sources)
        recomputed = tuple(index for index, source in self.sources if source.recomputed)
        report = TrajectoryReport(start, staleness, recomputed, tuple(self.reports[place]), seconds)
        base, seed, steps = self.base, branch.change.seed, tuple(self.steps[place])
        latents: Latents = branch.latents
        return Trajectory(
            denoiser=base.denoiser,
            schedule=base.schedule,
            seed=base.seed if seed is None else seed,
            conditions=branch.conditions,
            steps=steps,
            latents=latents,
            base=base,
            region=branch.change.region,
            report=report,
        )
