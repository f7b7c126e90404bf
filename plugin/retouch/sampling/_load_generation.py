"""A generation comes back from disk."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from retouch.errors import RunError, SamplingError
from retouch.region import Region
from retouch.sampling._conditions import Conditions
from retouch.sampling._decoder import Decoder
from retouch.sampling._denoiser import Denoiser
from retouch.sampling._generate import check_kept, drop
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
    generation_fault,
    read_generation_arrays,
    read_generation_record,
    run_directory,
)
from retouch.sampling._schedule import Schedule, Scheduler
from retouch.sampling._trajectory import Step, Trajectory
from retouch.session import Run

Arrays = Mapping[str, NDArray[Any]]


def load_generation(directory: Path, denoiser: Denoiser, decoder: Decoder, scheduler: Scheduler) -> Generation:
    """The generation in a directory, its runs kept under the ids that they had.

    Args:
        directory: the directory.
        denoiser: the pipeline's denoiser.
        decoder: its decoder.
        scheduler: its scheduler.

    Raises:
        RunError: it was made with another model, or its states do not fit into the store.
        RunFileError: the directory is no generation, or a file is missing, truncated or changed.
        SamplingError: the scheduler makes other steps.
    """
    record = read_generation_record(directory)
    _check_model(record, denoiser, directory)
    schedule = Schedule(scheduler, record.steps)
    _check_schedule(record, schedule, directory)
    arrays = read_generation_arrays(directory, record, _shapes(record, denoiser, decoder))
    conditions = _conditions(record, arrays)
    region = None if record.policy is None else Region.from_mask(arrays[REGION], record.policy)
    runs, decoded = _runs(directory, record, denoiser, decoder)
    latents, outputs = arrays[LATENTS], arrays[OUTPUTS]
    steps = tuple(
        Step(index, time, latents[index], outputs[index], own)
        for index, (time, own) in enumerate(zip(schedule.timesteps, runs, strict=True))
    )
    trajectory = Trajectory(denoiser, schedule, record.seed, conditions, steps, latents[-1], region=region)
    return Generation(arrays[IMAGE], record.prompt, record.negative_prompt, trajectory, decoded=decoded)


def _shapes(record: GenerationRecord, denoiser: Denoiser, decoder: Decoder) -> dict[str, tuple[int, ...]]:
    """The shapes of what a trajectory holds, and of the image."""
    count, latents = len(record.calls), denoiser.latents_shape
    region = {} if record.policy is None else {REGION: denoiser.manifest.grid(denoiser.manifest.editable.grid).dims}
    return {LATENTS: (count + 1, *latents), OUTPUTS: (count, *latents), IMAGE: (*decoder.image_shape(), 3), **region}


def _runs(
    directory: Path, record: GenerationRecord, denoiser: Denoiser, decoder: Decoder
) -> tuple[list[tuple[Run, ...]], Run]:
    """Per step the runs of its calls, and the decoder's run; where one does not come back, none stays that came."""
    before = {*denoiser.session.runs(), *decoder.session.runs()}
    loaded: list[Run] = []
    try:
        places = [[run_directory(directory, step, call) for call in range(n)] for step, n in enumerate(record.calls)]
        loaded.extend(denoiser.session.load_run(place) for step in places for place in step)
        loaded.append(decoder.session.load_run(directory / DECODER))
        check_kept(loaded)
    except BaseException:
        drop(run for run in loaded if run.id not in before)
        raise
    *calls, decoded = loaded
    each = iter(calls)
    return [tuple(islice(each, len(step))) for step in places], decoded


def _conditions(record: GenerationRecord, arrays: Arrays) -> Conditions:
    positive, negative = (
        {name.removeprefix(side): array for name, array in arrays.items() if name.startswith(side)}
        for side in (POSITIVE, NEGATIVE)
    )
    return Conditions(positive, negative or None, record.guidance)


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
    if len(record.calls) != len(schedule.timesteps):
        raise generation_fault(
            f"Expected {directory} to have the calls of {len(schedule.timesteps)} steps, got {len(record.calls)}."
        )
