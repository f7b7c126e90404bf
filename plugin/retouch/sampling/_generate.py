"""The sampling loop in full."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from retouch.errors import SamplingError
from retouch.sampling._conditions import Conditions
from retouch.sampling._denoiser import Denoiser
from retouch.sampling._recording import Recording
from retouch.sampling._schedule import Schedule, Stepper
from retouch.sampling._trajectory import Step, Trajectory
from retouch.session import Run

Latents = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Progress:
    """Where a loop is, as its callback is told after every step.

    Attributes:
        index: the step that was made.
        steps: the number of steps of the schedule.
        latents: the latents after it; of several edits at once, those of each.
    """

    index: int
    steps: int
    latents: tuple[Latents, ...] = field(repr=False)


Callback = Callable[[Progress], None]


def generate(
    denoiser: Denoiser,
    schedule: Schedule,
    conditions: Conditions,
    *,
    seed: int = 0,
    latents: ArrayLike | None = None,
    recording: Recording | None = None,
    callback: Callback | None = None,
) -> Trajectory:
    """A generation, recorded so that it can be edited.

    The latents start, and stochastic schedulers draw, as those of a diffusers pipeline with
    ``torch.Generator().manual_seed(seed)``.

    Args:
        denoiser: the network.
        schedule: the scheduler and its steps.
        conditions: what is asked for.
        seed: seed of all noise.
        latents: latents to start from instead of the seed's; of the shape ``denoiser.latents_shape``.
        recording: which steps keep their states; ``None`` means all.
        callback: called after every step. What it raises ends the loop, and nothing of it is kept.

    Raises:
        FeedError: the conditions do not fit the bundle.
        NonFiniteError: an output of the model holds NaN or infinity.
        RunError: the states do not fit into the session's store.
        SamplingError: the latents do not fit the bundle.
    """
    kept = Recording() if recording is None else recording
    stepper = schedule.start(seed)
    current = _start(denoiser, stepper, latents)
    steps: list[Step] = []
    try:
        for index, _ in enumerate(schedule.timesteps):
            record = kept.keeps(index, len(schedule.timesteps))
            steps.append(full_step(denoiser, stepper, conditions, index, current, record=record))
            current = stepper.step(steps[-1].output, index, current)
            if callback is not None:
                callback(Progress(index, len(schedule.timesteps), (current,)))
        check_kept(run for step in steps for run in step.runs)
    except BaseException:
        drop(run for step in steps for run in step.runs)
        raise
    return Trajectory(denoiser, schedule, seed, conditions, tuple(steps), current)


def full_step(
    denoiser: Denoiser, stepper: Stepper, conditions: Conditions, index: int, latents: Latents, *, record: bool
) -> Step:
    """A step by the full model."""
    time = float(stepper.timesteps[index])
    runs = denoiser.base(stepper.scaled(latents, index), time, conditions, record=record)
    try:
        output = denoiser.predicted(runs, conditions)
    except BaseException:
        drop(runs)
        raise
    if not record:
        drop(runs)
    return Step(index, time, latents, output, runs if record else ())


def drop(runs: Iterable[Run]) -> None:
    """Drop runs, and their states."""
    for run in runs:
        run.close()


def check_kept(runs: Iterable[Run]) -> None:
    """Raises ``RunError`` if the store has evicted a run of a loop while later ones were recorded."""
    for run in runs:
        _ = run.states


def _start(denoiser: Denoiser, stepper: Stepper, latents: ArrayLike | None) -> Latents:
    drawn = stepper.noise(denoiser.latents_shape)
    if latents is None:
        return drawn
    given = np.array(latents, np.float32)
    if given.shape != drawn.shape:
        raise SamplingError(
            f"Expected latents of shape {drawn.shape}, got {given.shape}. The bundle was exported for that size: "
            "give latents of it, or export the model again with --fix height=... width=..."
        )
    given.setflags(write=False)
    return given
