"""Manifests as JSON: strict reading, readable writing."""

from __future__ import annotations

import dataclasses
import json
import types
import typing
from collections.abc import Mapping
from typing import Any

from retouch.bundle._manifest import SCHEMA_VERSION, Manifest
from retouch.errors import BundleError


def manifest_to_json(manifest: Manifest) -> str:
    """The manifest as JSON text, one member of a list of objects a line."""
    data = dataclasses.asdict(manifest)
    lines = [f"{json.dumps(key)}: {_block(value)}" for key, value in data.items()]
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
        data = json.loads(text)
    except json.JSONDecodeError as error:
        raise BundleError(f"{where} is not valid JSON ({error}). Export the model again.") from error
    version = data.get("schema_version") if isinstance(data, dict) else None
    if version != SCHEMA_VERSION:
        raise BundleError(
            f"{where} has schema version {version!r}; this version of Retouch reads {SCHEMA_VERSION}. "
            "Export the model again, or install the version of Retouch that wrote the bundle."
        )
    manifest = _read(data, Manifest, where)
    assert isinstance(manifest, Manifest)
    return manifest


def _block(value: Any) -> str:
    if isinstance(value, (list, tuple)) and value and isinstance(value[0], dict):
        return "[\n  " + ",\n  ".join(json.dumps(item) for item in value) + "\n]"
    return json.dumps(value)


def _read(value: Any, kind: Any, where: str) -> Any:
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if dataclasses.is_dataclass(kind):
        return _read_object(value, kind, where)
    if origin in (typing.Union, types.UnionType):
        if value is None:
            return None
        return _read(value, next(a for a in arguments if a is not type(None)), where)
    if origin is tuple:
        _expect(isinstance(value, list), value, "a list", where)
        return tuple(_read(item, arguments[0], f"{where}[{i}]") for i, item in enumerate(_pairs(value, arguments)))
    if origin in (dict, Mapping):
        _expect(isinstance(value, dict), value, "an object", where)
        return {key: _read(item, arguments[1], f"{where}.{key}") for key, item in value.items()}
    if kind is float:
        _expect(isinstance(value, (int, float)) and not isinstance(value, bool), value, "a number", where)
        return float(value)
    _expect(isinstance(value, kind) and (kind is bool or not isinstance(value, bool)), value, kind.__name__, where)
    return value


def _pairs(value: list[Any], arguments: tuple[Any, ...]) -> list[Any]:
    return value if len(arguments) < 2 or arguments[1] is ... or len(value) == len(arguments) else []


def _read_object(value: Any, kind: Any, where: str) -> Any:
    _expect(isinstance(value, dict), value, "an object", where)
    hints = typing.get_type_hints(kind)
    fields = {field.name: field for field in dataclasses.fields(kind)}
    unknown = sorted(set(value) - set(fields))
    _expect(not unknown, unknown, "no further members", where)
    missing = [n for n, f in fields.items() if n not in value and _required(f)]
    _expect(not missing, missing, "all required members; missing are those", where)
    return kind(**{name: _read(item, hints[name], f"{where}.{name}") for name, item in value.items()})


def _required(field: dataclasses.Field[Any]) -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def _expect(holds: bool, got: Any, wanted: str, where: str) -> None:
    if not holds:
        text = repr(got)
        raise BundleError(f"{where}: expected {wanted}, got {text[:80]}. The manifest was changed; export again.")
