"""Which recording or edit a call belongs to.

Scopes belong to the context that opened them (``contextvars``): a session may record in one thread or task while it
runs as it always does in another. A thread that is started inside of a scope has to be given its context.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType
from typing import Any, Protocol

from numpy.typing import ArrayLike, NDArray

from retouch.errors import RunError

Arrays = Mapping[str, NDArray[Any]]


class Scope(Protocol):
    """What becomes of a session's calls inside of a ``with`` block."""

    def begin(self) -> int:
        """The number of the call that begins now."""

    def compute(self, number: int, feeds: Mapping[str, ArrayLike]) -> Arrays:
        """The model's outputs in that call (read-only arrays)."""

    def end(self) -> None:
        """No call may begin any more."""


_OPEN: ContextVar[Mapping[object, Scope]] = ContextVar("retouch_scopes", default=MappingProxyType({}))


def scope_of(session: object) -> Scope | None:
    """The scope that is open for a session in this context."""
    return _OPEN.get().get(session)


@contextmanager
def opened(session: object, scope: Scope) -> Iterator[None]:
    """A context in which the session's calls belong to the scope.

    Raises:
        RunError: another scope of the session is open in this context.
    """
    if scope_of(session) is not None:
        raise RunError(
            "Expected no recording or edit of this session to be open in this context, got one. End it first; another "
            "thread or task may open its own."
        )
    token = _OPEN.set({**_OPEN.get(), session: scope})
    try:
        yield
    finally:
        _OPEN.reset(token)
        scope.end()


def warn_of_idleness(what: str) -> None:
    """Say that a scope saw no call: what was meant for it may have been computed in full, in another context."""
    warnings.warn(
        f"The {what} saw no call. Calls of another thread belong to it only if the thread was given its context "
        "(contextvars.copy_context().run).",
        stacklevel=4,
    )
