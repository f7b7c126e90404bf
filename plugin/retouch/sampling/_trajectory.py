"""A generation, with what it takes to edit it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from numpy.typing import NDArray

from retouch.errors import RunError
from retouch.region import Region
from retouch.sampling._conditions import Conditions
from retouch.sampling._denoiser import Denoiser
from retouch.sampling._schedule import Schedule
from retouch.session import Report, Run

Latents = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Step:
    """One evaluation of the model.

    Attributes:
        index: its place in the schedule.
        time: its time.
        latents: the latents before it, of which the model's input is a scaled copy.
        output: the guided prediction.
        runs: the recorded runs of its calls; none if the step was not recorded.
    """

    index: int
    time: float
    latents: Latents = field(repr=False)
    output: Latents = field(repr=False)
    runs: tuple[Run, ...] = field(default=(), repr=False)


@dataclass(frozen=True)
class TrajectoryReport:
    """What an edit of a trajectory says about itself.

    Attributes:
        start: index of the first step that was computed; the ones before it are the base's.
        staleness: per computed step, how many steps away the states were recorded that it used.
        recomputed: indices of the steps whose states were gone and were computed again.
        runs: per computed step, the reports of its calls.
        seconds: wall time.
    """

    start: int
    staleness: tuple[int, ...]
    recomputed: tuple[int, ...]
    runs: tuple[tuple[Report, ...], ...] = field(repr=False)
    seconds: float

    @property
    def flop_ratio(self) -> float:
        """FLOPs of the edit's calls as a share of those of all steps in full."""
        calls = len(self.runs[0])
        total = (self.start + len(self.runs)) * calls
        return sum(report.flop_ratio for step in self.runs for report in step) / total

    def __str__(self) -> str:
        paths = [report.path for step in self.runs for report in step]
        lines = {
            "steps": f"{len(self.runs)} computed, the {self.start} before them are the base's",
            "calls": f"{paths.count('edit')} edit runs, {paths.count('dense')} full runs (dense fallback)",
            "FLOPs": f"{self.flop_ratio:.1%} of a full generation",
            "states": f"at most {max(self.staleness)} steps away" if any(self.staleness) else "each step's own",
            "time": f"{self.seconds:.2f} s",
        }
        if self.recomputed:
            lines["recomputed"] = f"states of steps {', '.join(map(str, self.recomputed))}"
        return "\n".join(f"{label:<12} {text}" for label, text in lines.items())


@dataclass(frozen=True, eq=False)
class Trajectory:
    """A generation, step by step. Undoing an edit is going back to its ``base``, which stays as it was.

    Attributes:
        denoiser: what computed it.
        schedule: its steps.
        seed: seed of its noise.
        conditions: what it was asked for.
        steps: its steps, in order.
        latents: the finished latents (read-only).
        base: the trajectory that it is an edit of; ``None`` if it is none, or was loaded.
        region: the region of that edit; ``None`` if it is none.
        report: how that edit came about; ``None`` if it is none, or was loaded.
    """

    denoiser: Denoiser = field(repr=False)
    schedule: Schedule = field(repr=False)
    seed: int
    conditions: Conditions = field(repr=False)
    steps: tuple[Step, ...] = field(repr=False)
    latents: Latents = field(repr=False)
    base: Trajectory | None = field(default=None, repr=False)
    region: Region | None = field(default=None, repr=False)
    report: TrajectoryReport | None = field(default=None, repr=False)

    def before(self, index: int) -> Latents:
        """The latents before the step of that index; those after the last one are the finished ones."""
        return self.latents if index == len(self.steps) else self.steps[index].latents

    @property
    def recorded(self) -> tuple[int, ...]:
        """The indices of the steps that were recorded, whether or not their states are still kept."""
        return tuple(step.index for step in self.steps if step.runs)

    @property
    def bytes(self) -> int:
        """The size of the states that are kept, those that are shared with the base included."""
        return sum(run.bytes for step in self.steps for run in step.runs if run.kept)

    def nearest(self, index: int) -> int:
        """The recorded step that is nearest to that one, of two the later.

        Raises:
            RunError: no step was recorded.
        """
        if not self.recorded:
            raise RunError(
                "Expected a trajectory whose steps were recorded, but none of its steps was. Generate, or edit, again "
                "with a recording, or edit with missing=MissingStates.RECOMPUTE."
            )
        return min(self.recorded, key=lambda other: (abs(other - index), -other))

    def close(self) -> None:
        """Drop the states of the steps that this trajectory made; those of its base stay. Doing it twice is fine."""
        shared = {run.id for run in _runs(self.base.steps)} if self.base is not None else set()
        for run in _runs(self.steps):
            if run.id not in shared:
                run.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _runs(steps: Sequence[Step]) -> list[Run]:
    return [run for step in steps for run in step.runs]
