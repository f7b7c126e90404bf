"""The states that an edit of a step is based on."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from retouch.errors import RunError
from retouch.sampling._schedule import Stepper
from retouch.sampling._trajectory import Trajectory
from retouch.session import Run


class MissingStates(Enum):
    """What an edit does where states were dropped or evicted."""

    ERROR = "error"
    """It raises ``RunError``, which names the step."""
    RECOMPUTE = "recompute"
    """It makes the base run of the step again, and says so in its report."""


@dataclass(frozen=True)
class Source:
    """States for a step.

    Attributes:
        runs: the runs of its calls.
        staleness: how many steps away they were recorded.
        recomputed: whether they were made again, for this step only.
    """

    runs: tuple[Run, ...]
    staleness: int = 0
    recomputed: bool = False

    def close(self) -> None:
        """Drop what was made for this step only."""
        if self.recomputed:
            for run in self.runs:
                run.close()


def states_for(trajectory: Trajectory, index: int, stepper: Stepper, missing: MissingStates) -> Source:
    """The states of the step, or of the recorded one that is nearest to it.

    Args:
        trajectory: the base.
        index: the step.
        stepper: a loop over its schedule that has come to that step.
        missing: what to do if they are gone.

    Raises:
        RunError: they are gone, or nothing was recorded, and they are not to be recomputed.
    """
    if trajectory.report is not None and not any(step.runs for step in trajectory.steps[trajectory.report.start :]):
        raise RunError(
            "Expected the edit that this one is based on to be recorded, but it was made with record=False, so that "
            "the states of what it changed are nowhere. Make it again with record=True, or edit the one before it."
        )
    if trajectory.recorded:
        place = trajectory.nearest(index)
        runs = trajectory.steps[place].runs
        own = trajectory.denoiser.session.bundle.fingerprint
        if all(run.kept and run.bundle_fingerprint == own for run in runs):
            return Source(runs, abs(place - index))
    if missing is MissingStates.RECOMPUTE and trajectory.region is None:
        step = trajectory.steps[index]
        latents = stepper.scaled(step.latents, index)
        return Source(trajectory.denoiser.base(latents, step.time, trajectory.conditions, record=True), 0, True)
    raise RunError(
        f"Expected the states of step {trajectory.nearest(index)} to be kept, but they were dropped or evicted. "
        "Generate again, give the session's store a larger budget, record fewer steps (Recording), or pass "
        "missing=MissingStates.RECOMPUTE, which makes one full run for every step whose states are gone (not of edits)."
    )
