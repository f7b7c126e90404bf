"""Texts on disk: a directory with the tokens, and with the keys and values that edits need."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from retouch.errors import RunFileError
from retouch.files import Kind, StagedDirectory, parse_json, read_dataclass, sha256_of
from retouch.states import relative_path
from retouch.text._generation import EditReport, Generation, TextReport
from retouch.text._model import KeysValues
from retouch.text._options import EosRule, MaskChoice, Oscillation, SamplerOptions, Window, ZeroThreshold

RECORD_FILE = "text_run.json"
STATES_FILE = "keys_values.safetensors"

_SCHEMA_VERSION = 1
_ENUMS: Mapping[str, type[Enum]] = {
    "zero_threshold": ZeroThreshold,
    "mask_choice": MaskChoice,
    "eos": EosRule,
    "window": Window,
    "oscillation": Oscillation,
}


@dataclass(frozen=True)
class TextRecord:
    """What ``text_run.json`` says beside options and report.

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
        edited: whether it is an edit.
        states_sha256: SHA-256 of the keys and values.
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
    edited: bool
    states_sha256: str


Details = tuple[Mapping[str, Any], Mapping[str, Any]]
"""Options and report, as JSON has them."""


def write_text_run(folder: Path, made: Generation, states: KeysValues, bundle: Path, fingerprint: str) -> None:
    """Writes a text into a directory, in one step.

    Raises:
        RunFileError: it cannot be written, or something else is there.
    """
    with StagedDirectory(folder, _KIND) as staged:
        save_file({name: np.ascontiguousarray(array) for name, array in states.items()}, staged.path / STATES_FILE)
        options = {
            name: value.value if name in _ENUMS else value for name, value in dataclasses.asdict(made.options).items()
        }
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
            edited=isinstance(made.report, EditReport),
            states_sha256=sha256_of(staged.path / STATES_FILE),
        )
        data = {**dataclasses.asdict(record), "options": options, "report": dataclasses.asdict(made.report)}
        text = json.dumps(data, indent=1, allow_nan=False)
        (staged.path / RECORD_FILE).write_text(f"{text}\n", encoding="utf-8")
        staged.finish()


def read_text_record(folder: Path) -> tuple[TextRecord, Details]:
    """What a directory's ``text_run.json`` holds.

    Raises:
        RunFileError: the directory is none of a text, or was changed.
    """
    path = folder / RECORD_FILE
    if not path.is_file():
        raise RunFileError(f"{folder} is not the directory of a text: it has no {RECORD_FILE}. Make one with -o.")
    try:
        data = parse_json(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise RunFileError(f"{path} cannot be read ({error}). Make the text again.") from error
    if not isinstance(data, dict) or data.get("schema_version") != _SCHEMA_VERSION:
        raise RunFileError(f"{path} is not of schema version {_SCHEMA_VERSION}. Make the text again.")
    options, report = data.pop("options", None), data.pop("report", None)
    if not isinstance(options, dict) or not isinstance(report, dict):
        raise RunFileError(f"{path} lacks the options or the report. Make the text again.")
    record = read_dataclass(
        data, TextRecord, str(path), lambda message: RunFileError(f"{message} Make the text again.")
    )
    return record, (options, report)


def read_text_run(folder: Path, record: TextRecord, details: Details, text: str) -> tuple[Generation, KeysValues]:
    """The text in a directory and its keys and values.

    Args:
        folder: the directory.
        record: what its record holds.
        details: the record's options and report.
        text: the tokens as text.

    Raises:
        RunFileError: a file is missing or was changed.
    """
    states = folder / STATES_FILE
    try:
        if sha256_of(states) != record.states_sha256:
            raise RunFileError(f"{states} was changed: its SHA-256 is not the record's. Make the text again.")
        arrays = load_file(states)
        enums = {name: kind(details[0][name]) for name, kind in _ENUMS.items()}
        options = SamplerOptions(**{**details[0], **enums})
        report = EditReport(**details[1]) if record.edited else TextReport(**details[1])
    except (OSError, SafetensorError, KeyError, TypeError, ValueError) as error:
        if isinstance(error, RunFileError):
            raise
        raise RunFileError(f"{folder} cannot be read ({error}). Make the text again.") from error
    padded = np.array(record.tokens, np.int64)
    padded.setflags(write=False)
    made = Generation(
        record.id,
        padded[: record.length],
        record.prompt_tokens,
        text,
        options,
        record.seed,
        report,
        padded=padded,
    )
    return made, arrays


def _fault(message: str) -> RunFileError:
    return RunFileError(f"{message} Make the text again.")


def _recognised(names: AbstractSet[str]) -> bool:
    return names == {RECORD_FILE, STATES_FILE}


_KIND = Kind("a text's directory", _recognised, RunFileError)
