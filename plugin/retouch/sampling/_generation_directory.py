"""A generation on disk: a directory with ``generation.json``, the latents, the image, and a run directory per call."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from retouch.errors import RunFileError
from retouch.files import (
    FileSpec,
    Kind,
    StagedDirectory,
    check_file,
    describe_file,
    path_from,
    read_record_file,
    write_record_file,
)
from retouch.region import RegionPolicy
from retouch.session import Run
from retouch.states import foreign_files, read_arrays, write_array, write_arrays

__all__ = [
    "DECODER",
    "GENERATION_FILE",
    "IMAGE",
    "IMAGE_FILE",
    "LATENTS",
    "NEGATIVE",
    "OUTPUTS",
    "POSITIVE",
    "REGION",
    "GenerationRecord",
    "check_generation_target",
    "generation_fault",
    "read_generation_arrays",
    "read_generation_record",
    "run_directory",
    "write_generation",
]

GENERATION_FILE = "generation.json"
GENERATION_SCHEMA_VERSION = 1
DECODER = "decoder"
IMAGE = "image"
IMAGE_FILE = f"{IMAGE}.npy"
LATENTS, OUTPUTS, REGION = "latents", "outputs", "region"
POSITIVE, NEGATIVE = "positive.", "negative."
_ARRAYS_FILE = "trajectory.safetensors"
_STEPS = "steps"

Arrays = Mapping[str, NDArray[Any]]


@dataclass(frozen=True)
class GenerationRecord:
    """What ``generation.json`` says.

    Attributes:
        pipeline: where the exported pipeline was, relative to the directory if there is such a path.
        denoiser: the fingerprint of the denoiser's bundle.
        producer: the version of Retouch that wrote the generation.
        prompt: what was asked for; of an edit, inside its region.
        negative_prompt: what guidance led away from.
        guidance: scale of guidance.
        seed: seed of the noise.
        scheduler: class of the scheduler.
        steps: number of steps that it was asked for.
        schedule: the fingerprint of its steps.
        calls: per step, the number of calls whose states are kept.
        policy: policy of the region, where the generation is an edit.
        dtypes: the dtypes of the arrays, by name.
        files: size and SHA-256 of the files beside the runs, which have a record of their own.
        schema_version: the version of this layout.
    """

    pipeline: str
    denoiser: str
    producer: str
    prompt: str
    negative_prompt: str
    guidance: float
    seed: int
    scheduler: str
    steps: int
    schedule: str
    calls: tuple[int, ...]
    policy: RegionPolicy | None
    dtypes: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, FileSpec] = field(default_factory=dict)
    schema_version: int = GENERATION_SCHEMA_VERSION

    def pipeline_path(self, directory: Path) -> Path:
        """Where the pipeline was when the generation was saved into that directory."""
        return path_from(directory, self.pipeline)


def run_directory(directory: Path, step: int, call: int) -> Path:
    """Where the run of a step's call lies in a generation's directory."""
    return directory / _STEPS / f"{step:04d}" / str(call)


def write_generation(
    target: Path,
    record: GenerationRecord,
    arrays: Arrays,
    steps: Sequence[Sequence[Run]],
    decoded: Run,
    extend: Callable[[Path], None] | None = None,
) -> None:
    """Writes a generation's directory in one step: after any failure, what was there before is still there.

    Args:
        target: the directory; that of a generation is replaced.
        record: its record; ``dtypes`` and ``files`` are filled in.
        arrays: what the trajectory holds, by name, and the image as :data:`IMAGE`.
        steps: per step, the runs of its calls.
        decoded: the decoder's run.
        extend: called with the directory before it is put in place, to put further files into it.

    Raises:
        RunError: a run was dropped.
        RunFileError: it cannot be written, or the directory holds something else.
    """
    with StagedDirectory(target, _GENERATION) as staged:
        packed = {name: array for name, array in arrays.items() if name != IMAGE}
        write_arrays(staged.path / _ARRAYS_FILE, packed)
        write_array(staged.path / IMAGE_FILE, arrays[IMAGE])
        for index, runs in enumerate(steps):
            for call, run in enumerate(runs):
                run.save(run_directory(staged.path, index, call))
        decoded.save(staged.path / DECODER)
        complete = dataclasses.replace(
            record,
            dtypes={name: str(array.dtype) for name, array in arrays.items()},
            files={name: describe_file(staged.path / name) for name in (_ARRAYS_FILE, IMAGE_FILE)},
        )
        write_record_file(staged.path / GENERATION_FILE, complete)
        if extend is not None:
            extend(staged.path)
        staged.finish()


def check_generation_target(target: Path) -> None:
    """Checks that a generation may be put there, before time goes into making it.

    Raises:
        RunFileError: something else is there.
    """
    StagedDirectory(target, _GENERATION).check_replaceable()


def read_generation_record(directory: str | os.PathLike[str]) -> GenerationRecord:
    """The record of a generation's directory.

    Raises:
        RunFileError: the directory is none, or its record was changed or has another schema version.
    """
    path = Path(directory) / GENERATION_FILE
    if not path.is_file():
        raise RunFileError(
            f"Expected the directory of a generation, got {directory}, which has no {GENERATION_FILE}. "
            "Make one with `retouch image generate` or Generation.save."
        )
    record = read_record_file(path, GenerationRecord, generation_fault, GENERATION_SCHEMA_VERSION)
    if set(record.files) != {_ARRAYS_FILE, IMAGE_FILE}:
        listed = ", ".join(record.files)
        raise generation_fault(f"{path}: expected files to list {_ARRAYS_FILE} and {IMAGE_FILE}, got {listed}.")
    return record


def read_generation_arrays(
    directory: Path, record: GenerationRecord, shapes: Mapping[str, tuple[int, ...]]
) -> dict[str, NDArray[Any]]:
    """The arrays of a generation, the image among them, after both files were compared with their SHA-256.

    Args:
        directory: the generation's directory.
        record: its record.
        shapes: shapes of arrays that have to be there.

    Raises:
        RunFileError: a file is missing, truncated or changed, or holds other arrays.
    """
    for name, spec in record.files.items():
        check_file(directory / name, spec, generation_fault)
    image = read_arrays({IMAGE: directory / IMAGE_FILE}, record.dtypes)
    arrays = {**read_arrays(directory / _ARRAYS_FILE, record.dtypes), **image}
    for name, shape in shapes.items():
        found = arrays[name].shape if name in arrays else "none"
        if found != shape:
            raise generation_fault(f"Expected {directory} to hold {name} of shape {shape}, got {found}.")
    for array in arrays.values():
        array.setflags(write=False)
    return arrays


def _is_generation(names: AbstractSet[str]) -> bool:
    own = {GENERATION_FILE, _ARRAYS_FILE, IMAGE_FILE, DECODER}
    return own <= names and names <= own | {_STEPS, f"{IMAGE}.png"}


def _foreign(directory: Path) -> list[str]:
    runs = [directory / DECODER, *sorted((directory / _STEPS).glob("*/*"))]
    return [name for run in runs for name in _foreign_at(run, run.relative_to(directory).as_posix())]


def _foreign_at(run: Path, name: str) -> list[str]:
    try:
        return [f"{name}/{file}" for file in foreign_files(run)]
    except RunFileError:
        return [name]


_GENERATION = Kind("the directory of a generation", _is_generation, RunFileError, _foreign)


def generation_fault(message: str) -> RunFileError:
    """The error of a directory that is not as it was written."""
    return RunFileError(
        f"{message} The generation's directory is incomplete, was changed, or is of another version of Retouch: copy "
        "it again, or generate again."
    )
