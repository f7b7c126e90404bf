"""A generation comes back from disk."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from retouch.errors import RunError, SamplingError
from retouch.region import Region
from retouch.sampling._conditions import Conditions
from retouch.sampling._decoder import Decoder
from retouch.sampling._denoiser import Denoiser
from retouch.sampling._generation import Generation
from retouch.sampling._generation_directory import (
    DECODER,
    IMAGE,
    LATENTS,
    NEGATIVE,
    OUTPUTS,
    POSITIVE,
    REGION,
    GenerationRecord,
    read_generation_arrays,
    read_generation_record,
    run_directory,
)
from retouch.sampling._schedule import Schedule, Scheduler
from retouch.sampling._trajectory import Step, Trajectory

Arrays = Mapping[str, NDArray[Any]]


def load_generation(directory: Path, denoiser: Denoiser, decoder: Decoder, scheduler: Scheduler) -> Generation:
    """The generation in a directory, its runs kept under the ids that they had.

    Args:
        directory: the directory.
        denoiser: the pipeline's denoiser.
        decoder: its decoder.
        scheduler: its scheduler.

    Raises:
        RunError: it was made with another model.
        RunFileError: the directory is no generation, or a file is missing, truncated or changed.
        SamplingError: the scheduler makes other steps.
    """
    record = read_generation_record(directory)
    _check_model(record, denoiser, directory)
    schedule = Schedule(scheduler, record.steps)
    _check_schedule(record, schedule, directory)
    arrays = read_generation_arrays(directory, record)
    trajectory = _trajectory(directory, record, arrays, denoiser, schedule)
    decoded = decoder.session.load_run(directory / DECODER)
    return Generation(arrays[IMAGE], record.prompt, record.negative_prompt, trajectory, decoded=decoded)


def _trajectory(
    directory: Path, record: GenerationRecord, arrays: Arrays, denoiser: Denoiser, schedule: Schedule
) -> Trajectory:
    positive, negative = (
        {name.removeprefix(side): array for name, array in arrays.items() if name.startswith(side)}
        for side in (POSITIVE, NEGATIVE)
    )
    steps = tuple(
        Step(
            index,
            time,
            arrays[LATENTS][index],
            arrays[OUTPUTS][index],
            tuple(denoiser.session.load_run(run_directory(directory, index, call)) for call in range(calls)),
        )
        for index, (time, calls) in enumerate(zip(schedule.timesteps, record.calls, strict=True))
    )
    return Trajectory(
        denoiser=denoiser,
        schedule=schedule,
        seed=record.seed,
        conditions=Conditions(positive, negative or None, record.guidance),
        steps=steps,
        latents=arrays[LATENTS][-1],
        region=None if record.policy is None else Region.from_mask(arrays[REGION], record.policy),
    )


def _check_model(record: GenerationRecord, denoiser: Denoiser, directory: Path) -> None:
    bundle = denoiser.session.bundle
    if record.denoiser != bundle.fingerprint:
        raise RunError(
            f"Expected a generation of the denoiser {bundle.fingerprint[:12]} ({bundle.path}), but the one in "
            f"{directory} was made with {record.denoiser[:12]}: another model, or other weights or adapters. States "
            "fit only the model that they come from: open that pipeline, or generate again with this one."
        )


def _check_schedule(record: GenerationRecord, schedule: Schedule, directory: Path) -> None:
    if record.schedule != schedule.fingerprint:
        name = type(schedule.scheduler).__name__
        raise SamplingError(
            f"Expected the steps of {directory}, {record.steps} of a {record.scheduler}, got those of a {name} that "
            f"makes others. Give the pipeline the scheduler it was made with (TextToImage(scheduler="
            f"{record.scheduler!r}), if its options are the pipeline's own), or generate again."
        )
