"""Where states are kept."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, TypeGuard

from retouch.engines import Movable, Value


class StateTier(Protocol):
    """A place for named groups of values. It knows nothing of runs; the store calls it under its own lock."""

    def put(self, key: str, values: Mapping[str, Value]) -> None:
        """Keep the values under that key, instead of what was there."""

    def get(self, key: str) -> Mapping[str, Value] | None:
        """The values under that key, or ``None``."""

    def drop(self, key: str) -> None:
        """Forget the values under that key, if there are any."""

    def relieve(self, key: str) -> int:
        """Moves the values under that key to where there is more room; returns how many bytes became free."""

    @property
    def bytes(self) -> int:
        """The size of what is kept."""


class HostTier:
    """Keeps the values as they are, in memory. Values that several groups share count once."""

    def __init__(self) -> None:
        self._groups: dict[str, Mapping[str, Value]] = {}

    def put(self, key: str, values: Mapping[str, Value]) -> None:
        """Keep the values under that key, instead of what was there."""
        self._groups[key] = dict(values)

    def get(self, key: str) -> Mapping[str, Value] | None:
        """The values under that key, or ``None``."""
        return self._groups.get(key)

    def drop(self, key: str) -> None:
        """Forget the values under that key, if there are any."""
        self._groups.pop(key, None)

    def relieve(self, key: str) -> int:  # noqa: ARG002  (the protocol's)
        """Nothing: there is no tier below."""
        return 0

    @property
    def bytes(self) -> int:
        """The size of what is kept."""
        values = {id(value): value for group in self._groups.values() for value in group.values()}
        return sum(value.nbytes for value in values.values())


class DeviceTier(HostTier):
    """Keeps values in the memory of a card, and has them move to host memory where that is full."""

    def relieve(self, key: str) -> int:
        """Moves the values under that key to host memory; returns how many bytes of the card's became free."""
        return sum(value.move_to_host() for value in self._groups.get(key, {}).values() if _is_movable(value))


def _is_movable(value: Value) -> TypeGuard[Movable]:
    return hasattr(value, "move_to_host")
