"""Manifests as JSON: strict reading, readable writing."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

from retouch.bundle._manifest import SCHEMA_VERSION, Manifest
from retouch.errors import BundleError
from retouch.files import parse_json, read_dataclass

_WITHOUT_ENGINES = 3
_WITHOUT_TRAITS = 4
_ONE_STACK = 5
_ONE_BATCH = 6
_WITHOUT_SPILLS = 7
_OLDER = (_WITHOUT_ENGINES, _WITHOUT_TRAITS, _ONE_STACK, _ONE_BATCH, _WITHOUT_SPILLS)

_EXPORTED_BEFORE = "the bundle was exported before edits with such moments shared runs; export it again"


def manifest_to_json(manifest: Manifest) -> str:
    """The manifest as JSON text, one member of a list of objects a line.

    Raises:
        BundleError: it holds NaN, infinity, or something else that JSON does not have.
    """
    data = dataclasses.asdict(manifest)
    try:
        lines = [f"{_line(key)}: {_block(value)}" for key, value in data.items()]
    except (TypeError, ValueError) as error:
        raise BundleError(f"The manifest cannot be written ({error}). It holds finite Python numbers only.") from error
    return "{\n" + ",\n".join(lines) + "\n}\n"


def manifest_from_json(text: str, where: str) -> Manifest:
    """The manifest in a JSON text.

    Args:
        text: the JSON.
        where: the file's name, for messages.

    Raises:
        BundleError: the text is no JSON, has another schema version, or lacks or mistypes a member.
    """
    try:
        data = parse_json(text)
    except ValueError as error:
        raise BundleError(f"{where} is not valid JSON ({error}). Export the model again.") from error
    if isinstance(data, dict):
        data = _upgraded(data)
    version = data.get("schema_version") if isinstance(data, dict) else None
    if version != SCHEMA_VERSION:
        raise BundleError(
            f"{where} has schema version {version!r}; this version of Retouch reads {SCHEMA_VERSION}. "
            "Export the model again, or install the version of Retouch that wrote the bundle."
        )
    return read_dataclass(data, Manifest, where, _fault)


def _upgraded(data: dict[str, Any]) -> dict[str, Any]:
    """What older versions wrote as they would write it now; what is no manifest of theirs stays as it is.

    Version 3 knew no engines and no build files, version 4 no traits of engines, version 5 one stacked graph only, that
    of cached moments, version 6 no engines of several batches, version 7 no spills of calibrated edits.
    """
    version = data.get("schema_version")
    if type(version) is not int or version not in _OLDER:
        return data
    moments = data.get("moments")
    if isinstance(moments, dict):
        data = {**data, "moments": {**moments, "spills": {}}}
    if version == _WITHOUT_SPILLS:
        return {**data, "schema_version": SCHEMA_VERSION}
    if version == _WITHOUT_ENGINES:
        data = {**data, "engines": {}, "recipe": ""}
    engines, edits, stack = data.get("engines"), data.get("edits"), data.get("stacked")
    if isinstance(engines, dict):
        lacking: dict[str, Any] = {"batch_axes": {}, **({} if version in (_ONE_STACK, _ONE_BATCH) else {"traits": []})}
        engines = {name: {**spec, **lacking} if isinstance(spec, dict) else spec for name, spec in engines.items()}
    if isinstance(edits, dict) and isinstance(stack, dict) and version != _ONE_BATCH:
        others: dict[str, Any] = {mode: {"graph": None, "reason": _EXPORTED_BEFORE} for mode in edits}
        stack = {**others, "cached": {**stack, "graph": _without_owners(stack.get("graph"))}}
        edits = {mode: _without_owners(spec) for mode, spec in edits.items()}
    return {**data, "engines": engines, "edits": edits, "stacked": stack, "schema_version": SCHEMA_VERSION}


def _without_owners(spec: Any) -> Any:
    return {**spec, "owners": []} if isinstance(spec, dict) else spec


def _block(value: Any) -> str:
    if isinstance(value, (list, tuple)) and value and isinstance(value[0], dict):
        return "[\n  " + ",\n  ".join(_line(item) for item in value) + "\n]"
    return _line(value)


def _line(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def _fault(message: str) -> BundleError:
    return BundleError(f"{message} The manifest was changed; export again.")
