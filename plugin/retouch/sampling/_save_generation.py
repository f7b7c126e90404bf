"""A generation goes to disk."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from retouch import __version__
from retouch.errors import RunError
from retouch.files import relative_path
from retouch.sampling._generation_directory import (
    IMAGE,
    LATENTS,
    NEGATIVE,
    OUTPUTS,
    POSITIVE,
    REGION,
    GenerationRecord,
    write_generation,
)

if TYPE_CHECKING:
    from retouch.sampling._generation import Generation


def save_generation(generation: Generation, target: Path, extend: Callable[[Path], None] | None) -> None:
    """Writes a generation into a directory; see :meth:`Generation.save`.

    Raises:
        RunError: it was not recorded, or its states are gone.
        RunFileError: it cannot be written, or the directory holds something else.
    """
    trajectory = generation.trajectory
    if generation.decoded is None or not trajectory.recorded:
        raise RunError(
            "Expected a generation that was recorded, got one without states. Generate with a recording, or edit with "
            "record=True, to save it."
        )
    pipeline = trajectory.denoiser.session.bundle.path.resolve().parents[1]
    record = _record(generation, relative_path(pipeline, target.resolve()))
    runs = [step.runs for step in trajectory.steps]
    write_generation(target, record, _arrays(generation), runs, generation.decoded, extend)


def _record(generation: Generation, pipeline: str) -> GenerationRecord:
    trajectory = generation.trajectory
    return GenerationRecord(
        pipeline=pipeline,
        denoiser=trajectory.denoiser.session.bundle.fingerprint,
        producer=f"retouch {__version__}",
        prompt=generation.prompt,
        negative_prompt=generation.negative_prompt,
        guidance=float(trajectory.conditions.guidance),
        seed=trajectory.seed,
        scheduler=type(trajectory.schedule.scheduler).__name__,
        steps=trajectory.schedule.steps,
        schedule=trajectory.schedule.fingerprint,
        calls=tuple(len(step.runs) for step in trajectory.steps),
        policy=None if trajectory.region is None else trajectory.region.policy,
    )


def _arrays(generation: Generation) -> dict[str, NDArray[Any]]:
    trajectory, conditions = generation.trajectory, generation.trajectory.conditions
    sides = {POSITIVE: conditions.positive, NEGATIVE: conditions.negative or {}}
    arrays = {f"{side}{name}": np.asarray(value) for side, values in sides.items() for name, value in values.items()}
    arrays[LATENTS] = np.stack([*(step.latents for step in trajectory.steps), trajectory.latents])
    arrays[OUTPUTS] = np.stack([step.output for step in trajectory.steps])
    if trajectory.region is not None:
        arrays[REGION] = trajectory.region.mask
    return {**arrays, IMAGE: generation.image}
