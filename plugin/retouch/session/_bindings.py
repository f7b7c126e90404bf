"""Bindings, kept for the next edit of the same region of the same run."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from retouch.engines import Binding

_KEPT_BINDINGS = 8


@dataclass(frozen=True)
class BindingKey:
    """What the inputs of a binding depend on, beside those that every run replaces."""

    run: str
    active_rows: str
    graph: str
    record: bool
    prepared: str


class Bindings:
    """The bindings used last, each lent to one thread at a time.

    A binding holds the states of its run; those of runs that are gone are thrown away at the next opportunity.
    """

    def __init__(self, alive: Callable[[str], bool]) -> None:
        self._alive = alive
        self._lock = threading.Lock()
        self._idle: list[tuple[BindingKey, Binding]] = []

    @contextmanager
    def lend(self, key: BindingKey, make: Callable[[], Binding]) -> Iterator[Binding]:
        """A binding for that key, which nobody else uses until the context ends. One that fails is not kept."""
        binding = self._take(key) or make()
        yield binding
        with self._lock:
            self._idle.append((key, binding))
            self._idle = [item for item in self._idle if self._alive(item[0].run)][-_KEPT_BINDINGS:]

    def sweep(self) -> None:
        """Throw away the bindings of runs that are gone."""
        with self._lock:
            self._idle = [item for item in self._idle if self._alive(item[0].run)]

    def _take(self, key: BindingKey) -> Binding | None:
        with self._lock:
            for place, (other, binding) in enumerate(self._idle):
                if other == key:
                    del self._idle[place]
                    return binding
        return None
