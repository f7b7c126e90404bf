"""JSON as dataclasses, read strictly: a file that somebody changed is refused and not half understood."""

from __future__ import annotations

import dataclasses
import functools
import json
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

T = TypeVar("T")

_Fault = Callable[[str], Exception]


def parse_json(text: str) -> Any:
    """What a JSON text holds.

    Raises:
        ValueError: it is not valid JSON; NaN and infinity are none.
    """
    return json.loads(text, parse_constant=_refuse_constant)


def read_dataclass(data: object, kind: type[T], where: str, fault: Callable[[str], Exception]) -> T:
    """The dataclass that parsed JSON holds.

    Members may be missing no more than they may be added, not even those with a default.

    Args:
        data: what was parsed.
        kind: the dataclass, of numbers, texts, tuples, mappings and other dataclasses.
        where: the file's name, for messages.
        fault: makes the exception to raise from a message that says what was expected and what was got.
    """
    value = _read(data, kind, where, fault)
    assert isinstance(value, kind)
    return value


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a number that JSON has")


def _read(value: Any, kind: Any, where: str, fault: _Fault) -> Any:
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if dataclasses.is_dataclass(kind):
        return _read_object(value, kind, where, fault)
    if origin in (typing.Union, types.UnionType):
        if value is None:
            return None
        return _read(value, next(a for a in arguments if a is not type(None)), where, fault)
    if origin is tuple:
        return _read_tuple(value, arguments, where, fault)
    if origin in (dict, Mapping):
        _expect(isinstance(value, dict), value, "an object", where, fault)
        return {key: _read(item, arguments[1], f"{where}.{key}", fault) for key, item in value.items()}
    if kind is float:
        _expect(isinstance(value, (int, float)) and not isinstance(value, bool), value, "a number", where, fault)
        return float(value)
    fits = isinstance(value, kind) and (kind is bool or not isinstance(value, bool))
    _expect(fits, value, kind.__name__, where, fault)
    return value


def _read_tuple(value: Any, arguments: tuple[Any, ...], where: str, fault: _Fault) -> tuple[Any, ...]:
    _expect(isinstance(value, list), value, "a list", where, fault)
    kinds = [arguments[0]] * len(value) if arguments[-1] is ... else list(arguments)
    _expect(len(value) == len(kinds), value, f"a list of {len(kinds)}", where, fault)
    pairs = zip(value, kinds, strict=True)
    return tuple(_read(item, kind, f"{where}[{i}]", fault) for i, (item, kind) in enumerate(pairs))


def _read_object(value: Any, kind: Any, where: str, fault: _Fault) -> Any:
    _expect(isinstance(value, dict), value, "an object", where, fault)
    hints = _hints(kind)
    unknown = sorted(set(value) - set(hints))
    _expect(not unknown, unknown, "no further members", where, fault)
    # None may be left out: without a manifest's `files`, for one, nothing would be checked.
    missing = [name for name in hints if name not in value]
    _expect(not missing, missing, "all members; missing are those", where, fault)
    return kind(**{name: _read(item, hints[name], f"{where}.{name}", fault) for name, item in value.items()})


@functools.cache
def _hints(kind: type) -> dict[str, Any]:
    return typing.get_type_hints(kind)


def _expect(holds: bool, got: object, wanted: str, where: str, fault: _Fault) -> None:
    if not holds:
        raise fault(f"{where}: expected {wanted}, got {repr(got)[:80]}.")
