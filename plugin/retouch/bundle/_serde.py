"""Manifests as JSON: strict reading, readable writing."""

from __future__ import annotations

import dataclasses
import functools
import json
import types
import typing
from collections.abc import Mapping
from typing import Any

from retouch.bundle._manifest import SCHEMA_VERSION, Manifest
from retouch.errors import BundleError


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
        data = json.loads(text, parse_constant=_refuse_constant)
    except ValueError as error:
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
        return "[\n  " + ",\n  ".join(_line(item) for item in value) + "\n]"
    return _line(value)


def _line(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a number that JSON has")


def _read(value: Any, kind: Any, where: str) -> Any:
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if dataclasses.is_dataclass(kind):
        return _read_object(value, kind, where)
    if origin in (typing.Union, types.UnionType):
        if value is None:
            return None
        return _read(value, next(a for a in arguments if a is not type(None)), where)
    if origin is tuple:
        return _read_tuple(value, arguments, where)
    if origin in (dict, Mapping):
        _expect(isinstance(value, dict), value, "an object", where)
        return {key: _read(item, arguments[1], f"{where}.{key}") for key, item in value.items()}
    if kind is float:
        _expect(isinstance(value, (int, float)) and not isinstance(value, bool), value, "a number", where)
        return float(value)
    _expect(isinstance(value, kind) and (kind is bool or not isinstance(value, bool)), value, kind.__name__, where)
    return value


def _read_tuple(value: Any, arguments: tuple[Any, ...], where: str) -> tuple[Any, ...]:
    _expect(isinstance(value, list), value, "a list", where)
    kinds = [arguments[0]] * len(value) if arguments[-1] is ... else list(arguments)
    _expect(len(value) == len(kinds), value, f"a list of {len(kinds)}", where)
    return tuple(_read(item, kind, f"{where}[{i}]") for i, (item, kind) in enumerate(zip(value, kinds, strict=True)))


def _read_object(value: Any, kind: Any, where: str) -> Any:
    _expect(isinstance(value, dict), value, "an object", where)
    hints = _hints(kind)
    unknown = sorted(set(value) - set(hints))
    _expect(not unknown, unknown, "no further members", where)
    # None may be left out, not even those with a default: without `files`, for one, nothing would be checked.
    missing = [name for name in hints if name not in value]
    _expect(not missing, missing, "all members; missing are those", where)
    return kind(**{name: _read(item, hints[name], f"{where}.{name}") for name, item in value.items()})


@functools.cache
def _hints(kind: type) -> dict[str, Any]:
    return typing.get_type_hints(kind)


def _expect(holds: bool, got: Any, wanted: str, where: str) -> None:
    if not holds:
        text = repr(got)
        raise BundleError(f"{where}: expected {wanted}, got {text[:80]}. The manifest was changed; export again.")
