"""Texts on disk: a directory with the tokens, and with the keys and values that edits need."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from retouch.bundle import DecoderSpec
from retouch.errors import RunFileError, SamplingError
from retouch.files import (
    FileSpec,
    Kind,
    StagedDirectory,
    check_file,
    describe_file,
    path_from,
    read_record_file,
    relative_path,
    write_record_file,
)
from retouch.states import read_arrays, write_arrays
from retouch.text._generation import EditReport, Generation, TextReport, read_only
from retouch.text._model import KeysValues
from retouch.text._options import SamplerOptions

RECORD_FILE = "text_run.json"
STATES_FILE = "keys_values.safetensors"

_SCHEMA_VERSION = 2


@dataclass(frozen=True)
class TextRecord:
    """What ``text_run.json`` says.

    Attributes:
        schema_version: version of this form.
        bundle: path of the bundle, relative to the directory.
        bundle_fingerprint: the bundle's contents.
        id: the run's id.
        tokens: tokens to the end of the last block.
        length: how many of them are the text.
        prompt_tokens: how many are the prompt.
        text: the text, to be read by people.
        seed: seed of what was drawn.
        options: how it was sampled.
        report: what it took, if it is no edit.
        edit_report: what it took, if it is one.
        states: size and SHA-256 of the keys and values.
    """

    schema_version: int
    bundle: str
    bundle_fingerprint: str
    id: str
    tokens: tuple[int, ...]
    length: int
    prompt_tokens: int
    text: str
    seed: int
    options: SamplerOptions
    report: TextReport | None
    edit_report: EditReport | None
    states: FileSpec

    def bundle_path(self, directory: Path) -> Path:
        """Where the bundle was when the text was saved into that directory."""
        return path_from(directory, self.bundle)


def write_text_run(folder: Path, made: Generation, states: KeysValues, bundle: Path, fingerprint: str) -> None:
    """Writes a text into a directory, in one step.

    Raises:
        RunFileError: it cannot be written, or something else is there.
    """
    with StagedDirectory(folder, _KIND) as staged:
        write_arrays(staged.path / STATES_FILE, states)
        report = made.report
        record = TextRecord(
            schema_version=_SCHEMA_VERSION,
            bundle=relative_path(bundle.resolve(), staged.target),
            bundle_fingerprint=fingerprint,
            id=made.id,
            tokens=tuple(made.padded.tolist()),
            length=len(made.tokens),
            prompt_tokens=made.prompt_tokens,
            text=made.text,
            seed=made.seed,
            options=made.options,
            report=report if isinstance(report, TextReport) else None,
            edit_report=report if isinstance(report, EditReport) else None,
            states=describe_file(staged.path / STATES_FILE),
        )
        write_record_file(staged.path / RECORD_FILE, record)
        staged.finish()


def check_text_target(target: Path) -> None:
    """Checks that a text may be put there, before time goes into making it.

    Raises:
        RunFileError: something else is there.
    """
    StagedDirectory(target, _KIND).check_replaceable()


def read_text_record(folder: Path) -> TextRecord:
    """What a directory's ``text_run.json`` says.

    Raises:
        RunFileError: the directory is none of a text, or was changed.
    """
    path = folder / RECORD_FILE
    if not path.is_file():
        raise RunFileError(f"{folder} is not the directory of a text: it has no {RECORD_FILE}. Make one with -o.")
    try:
        return read_record_file(path, TextRecord, _fault, _SCHEMA_VERSION)
    except SamplingError as error:
        raise _fault(f"{path}: {error}") from error


def read_text_run(folder: Path, record: TextRecord, spec: DecoderSpec, text: str) -> tuple[Generation, KeysValues]:
    """The text in a directory and its keys and values.

    Args:
        folder: the directory.
        record: what its record says; its tokens were checked.
        spec: the model's shape.
        text: the tokens as text.

    Raises:
        RunFileError: a file is missing or was changed.
    """
    check_file(folder / STATES_FILE, record.states, _fault)
    shape = spec.cache_shape(len(record.tokens))
    wanted = {f"{kind}.{layer}": shape for kind in ("keys", "values") for layer in range(spec.layers)}
    arrays = read_arrays(folder / STATES_FILE, dict.fromkeys(wanted, "float32"))
    if {name: array.shape for name, array in arrays.items()} != wanted:
        raise _fault(f"Expected {folder / STATES_FILE} to hold keys and values {shape} of {spec.layers} layers.")
    padded = read_only(np.array(record.tokens, np.int64))
    tokens, report = padded[: record.length], record.report or record.edit_report
    if report is None:
        raise _fault(f"Expected {folder / RECORD_FILE} to have a report, got none.")
    options, seed = record.options, record.seed
    return Generation(record.id, tokens, record.prompt_tokens, text, options, seed, report, padded=padded), arrays


def check_record(folder: Path, record: TextRecord, spec: DecoderSpec) -> None:
    """Checks that a record's tokens are a text of the model.

    Raises:
        RunFileError: they are not.
    """
    count = len(record.tokens)
    whole = count % spec.block == 0 and count <= spec.positions
    if not (whole and 0 <= record.prompt_tokens <= record.length <= count and record.length):
        raise _fault(
            f"Expected {folder / RECORD_FILE} to have whole blocks of {spec.block} tokens, up to {spec.positions}, and "
            f"a prompt and a text within them, got {count}, {record.prompt_tokens} and {record.length}."
        )
    wrong = [token for token in record.tokens if not 0 <= token < spec.vocabulary or token == spec.mask_id]
    if wrong:
        raise _fault(f"Expected {folder / RECORD_FILE} to have tokens of the model, got {wrong[0]}.")


def _fault(message: str) -> RunFileError:
    return RunFileError(
        f"{message} The directory was changed, or is of another version of Retouch: make the text again."
    )


def _recognised(names: AbstractSet[str]) -> bool:
    return names == {RECORD_FILE, STATES_FILE}


_KIND = Kind("a text's directory", _recognised, RunFileError)
