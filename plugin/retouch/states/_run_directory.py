"""A run on disk: a directory with ``run.json``, the states and feeds as safetensors, and one .npy file per output."""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Callable, Mapping
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
from retouch.states._array_files import FileNames, read_arrays, write_array, write_arrays

RUN_FILE = "run.json"
RUN_SCHEMA_VERSION = 1

_PACKED = {"states": "states.safetensors", "feeds": "feeds.safetensors"}
_OUTPUTS = "outputs"


def _is_run(names: AbstractSet[str]) -> bool:
    return {RUN_FILE, *_PACKED.values()} <= names


def foreign_files(directory: Path) -> list[str]:
    """What lies in a run directory and is not the run's: neither its files nor previews of its outputs.

    Raises:
        RunFileError: the directory is none, or its record was changed or has another schema version.
    """
    outputs = [Path(file).stem for file in read_record(directory).outputs.values()]
    previews = "|".join(map(re.escape, outputs))
    own = re.compile(
        f"{re.escape(RUN_FILE)}|{'|'.join(_PACKED.values())}|{_OUTPUTS}/({previews})(\\.npy|(\\.\\d+)?\\.png)"
    )
    present = (path.relative_to(directory).as_posix() for path in directory.rglob("*") if not path.is_dir())
    return [name for name in present if not own.fullmatch(name)]


_RUN = Kind("a run directory", _is_run, RunFileError, foreign_files)


@dataclass(frozen=True)
class RunRecord:
    """What ``run.json`` says.

    Attributes:
        run_id: the run's id.
        bundle: where the bundle was, relative to the run directory if there is such a path.
        bundle_fingerprint: the fingerprint of the bundle that the run was made with.
        producer: the version of Retouch that wrote the run.
        outputs: the file of every output, by name.
        files: size and SHA-256 of every file, by its path inside the directory.
        schema_version: the version of this layout.
    """

    run_id: str
    bundle: str
    bundle_fingerprint: str
    producer: str
    outputs: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, FileSpec] = field(default_factory=dict)
    schema_version: int = RUN_SCHEMA_VERSION

    def bundle_path(self, directory: Path) -> Path:
        """Where the bundle was when the run was saved into that directory."""
        return path_from(directory, self.bundle)


def write_run(
    target: Path,
    record: RunRecord,
    parts: Mapping[str, Mapping[str, NDArray[Any]]],
    extend: Callable[[Path], None] | None = None,
) -> None:
    """Writes a run directory in one step: after any failure, what was there before is still there.

    Args:
        target: the directory; a run directory that is there is replaced.
        record: the run's record; ``outputs`` and ``files`` are filled in.
        parts: the feeds, outputs and states, by name.
        extend: called with the directory before it is put in place, to put further files into it.

    Raises:
        RunFileError: it cannot be written, or the directory holds something else.
    """
    with StagedDirectory(target, _RUN) as staged:
        names = FileNames()
        outputs = {name: f"{_OUTPUTS}/{names.unique(name)}.npy" for name in parts[_OUTPUTS]}
        (staged.path / _OUTPUTS).mkdir()
        for part, file in _PACKED.items():
            write_arrays(staged.path / file, parts[part])
        for name, file in outputs.items():
            write_array(staged.path / file, parts[_OUTPUTS][name])
        files = {file: describe_file(staged.path / file) for file in (*_PACKED.values(), *outputs.values())}
        write_record_file(staged.path / RUN_FILE, dataclasses.replace(record, outputs=outputs, files=files))
        if extend is not None:
            extend(staged.path)
        staged.finish()


def check_run_target(target: Path) -> None:
    """Checks that a run may be put there, before time goes into making it.

    Raises:
        RunFileError: something else is there.
    """
    StagedDirectory(target, _RUN).check_replaceable()


def read_record(directory: str | os.PathLike[str]) -> RunRecord:
    """The record of a run directory.

    Raises:
        RunFileError: the directory is none, or its record was changed or has another schema version.
    """
    path = Path(directory) / RUN_FILE
    if not path.is_file():
        raise RunFileError(
            f"Expected a run directory, got {directory}, which has no {RUN_FILE}. "
            "Make one with `retouch run` or Run.save."
        )
    record = read_record_file(path, RunRecord, _fault, RUN_SCHEMA_VERSION)
    _check_names(record, path)
    return record


def read_run(
    directory: Path, record: RunRecord, dtypes: Mapping[str, Mapping[str, str]]
) -> dict[str, dict[str, NDArray[Any]]]:
    """The feeds, outputs and states of a run directory, after every file was compared with its size and SHA-256.

    Args:
        directory: the run directory.
        record: its record.
        dtypes: per part, the dtype of every array that may be in it.

    Raises:
        RunFileError: a file is missing, truncated or changed, or holds other arrays.
    """
    for name, spec in record.files.items():
        check_file(directory / name, spec, _fault)
    parts = {part: read_arrays(directory / file, dtypes[part]) for part, file in _PACKED.items()}
    files = {name: directory / file for name, file in record.outputs.items()}
    return {**parts, _OUTPUTS: read_arrays(files, dtypes[_OUTPUTS])}


def _check_names(record: RunRecord, path: Path) -> None:
    wanted = {*_PACKED.values(), *record.outputs.values()}
    if wanted != set(record.files):
        raise _fault(f"{path}: expected files to list {', '.join(sorted(wanted))}, got {', '.join(record.files)}.")
    outside = [name for name in wanted if Path(name).is_absolute() or ".." in Path(name).parts]
    if outside:
        raise _fault(f"{path}: expected files inside of the run directory, got {outside[0]!r}.")


def _fault(message: str) -> RunFileError:
    return RunFileError(
        f"{message} The run directory is incomplete, was changed, or is of another version of Retouch: copy the run "
        "directory again, or make the run again."
    )
