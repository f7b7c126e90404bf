"""JSON as dataclasses, read strictly: a file that somebody changed is refused and not half understood."""

from __future__ import annotations

import dataclasses
import functools
import json
import types
import typing
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any, TypeVar

T = TypeVar("T")

_Reader = Callable[[Any], Any]


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
        kind: the dataclass, of numbers, texts, enums by their values, tuples, mappings and other dataclasses.
        where: the file's name, for messages.
        fault: makes the exception to raise from a message that says what was expected and what was got.
    """
    try:
        value = _read_object(kind, data)
    except _Unexpected as error:
        raise fault(f"{where}{error.place}: expected {error.wanted}, got {repr(error.got)[:80]}.") from None
    assert isinstance(value, kind)
    return value


class _Unexpected(Exception):  # noqa: N818  (never leaves this file)
    """Something else than what was to be read; ``place`` says where and grows on its way out."""

    def __init__(self, got: object, wanted: str, place: str = "") -> None:
        super().__init__()
        self.got, self.wanted, self.place = got, wanted, place


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a number that JSON has")


# A manifest has tens of thousands of members of a few dozen types, so what a type asks for is found out once.
@functools.cache
def _reader(kind: Any) -> _Reader:
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if dataclasses.is_dataclass(kind):
        return functools.partial(_read_object, kind)
    if origin in (typing.Union, types.UnionType):
        some = _reader(next(argument for argument in arguments if argument is not type(None)))
        return lambda value: None if value is None else some(value)
    if origin is tuple and arguments[-1] is ...:
        return functools.partial(_read_list, _reader(arguments[0]))
    if origin is tuple:
        return functools.partial(_read_tuple, [_reader(argument) for argument in arguments])
    if origin in (dict, Mapping):
        return functools.partial(_read_mapping, _reader(arguments[1]))
    if isinstance(kind, type) and issubclass(kind, Enum):
        return functools.partial(_read_member, kind)
    return _read_number if kind is float else functools.partial(_read_plain, kind)


def _read_member(kind: type[Enum], value: Any) -> Enum:
    values = [member.value for member in kind]
    if value not in values:
        raise _Unexpected(value, f"one of {values}")
    return kind(value)


def _read_plain(kind: type, value: Any) -> Any:
    if not isinstance(value, kind) or (kind is not bool and isinstance(value, bool)):
        raise _Unexpected(value, kind.__name__)
    return value


def _read_number(value: Any) -> float:
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        raise _Unexpected(value, "a number")
    return float(value)


def _read_list(item: _Reader, value: Any) -> tuple[Any, ...]:
    if not isinstance(value, list):
        raise _Unexpected(value, "a list")
    return _read_items([item] * len(value), value)


def _read_tuple(items: list[_Reader], value: Any) -> tuple[Any, ...]:
    if not isinstance(value, list) or len(value) != len(items):
        raise _Unexpected(value, f"a list of {len(items)}")
    return _read_items(items, value)


def _read_items(items: list[_Reader], values: list[Any]) -> tuple[Any, ...]:
    read = list[Any]()
    try:
        for item, value in zip(items, values, strict=True):
            read.append(item(value))
    except _Unexpected as error:
        error.place = f"[{len(read)}]{error.place}"
        raise
    return tuple(read)


def _read_mapping(item: _Reader, value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _Unexpected(value, "an object")
    return _read_members(dict.fromkeys(value, item), value)


def _read_object(kind: Any, value: Any) -> Any:
    if not isinstance(value, dict):
        raise _Unexpected(value, "an object")
    members = _members(kind)
    if unknown := sorted(value.keys() - members.keys()):
        raise _Unexpected(unknown, "no further members")
    # None may be left out: without a manifest's `files`, for one, nothing would be checked.
    if missing := [name for name in members if name not in value]:
        raise _Unexpected(missing, "all members; missing are those")
    return kind(**_read_members(members, value))


def _read_members(members: dict[str, _Reader], value: dict[str, Any]) -> dict[str, Any]:
    read = dict[str, Any]()
    name = ""
    try:
        for name, member in value.items():
            read[name] = members[name](member)
    except _Unexpected as error:
        error.place = f".{name}{error.place}"
        raise
    return read


@functools.cache
def _members(kind: type) -> dict[str, _Reader]:
    return {name: _reader(hint) for name, hint in typing.get_type_hints(kind).items()}
