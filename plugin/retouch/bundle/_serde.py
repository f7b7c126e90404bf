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
    """Version 3 knew no engines and no build files, version 4 no traits of engines; the rest is as it was."""
    version = data.get("schema_version")
    if type(version) is not int or version not in (_WITHOUT_ENGINES, _WITHOUT_TRAITS):
        return data
    if version == _WITHOUT_ENGINES:
        data = {**data, "engines": {}, "recipe": ""}
    engines = data.get("engines")
    if isinstance(engines, dict):
        engines = {name: {**spec, "traits": []} if isinstance(spec, dict) else spec for name, spec in engines.items()}
    return {**data, "engines": engines, "schema_version": SCHEMA_VERSION}


def _block(value: Any) -> str:
    if isinstance(value, (list, tuple)) and value and isinstance(value[0], dict):
        return "[\n  " + ",\n  ".join(_line(item) for item in value) + "\n]"
    return _line(value)


def _line(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def _fault(message: str) -> BundleError:
    return BundleError(f"{message} The manifest was changed; export again.")
