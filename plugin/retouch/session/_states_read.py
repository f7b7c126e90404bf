"""What edits read of the states of their runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from retouch.bundle import EditGraphSpec
from retouch.engines import Value
from retouch.errors import RunError
from retouch.session._lru import Lru
from retouch.session._mode import Moments, read_ids

_KEPT = 64


@dataclass(frozen=True)
class StatesRead:
    """How many states an edit reads, and their size; without the states, so that a dropped run frees them."""

    count: int
    nbytes: int


class StatesChecked:
    """What is read per run and graph. A run's states never change, so they are looked through once."""

    def __init__(self) -> None:
        self._read: Lru[tuple[str, str], StatesRead] = Lru(_KEPT)

    def of(self, run: str, key: str, spec: EditGraphSpec, states: Mapping[str, Value], moments: Moments) -> StatesRead:
        """What the graph under a key reads of a run.

        Raises:
            RunError: the run lacks states that the graph reads.
        """
        return self._read.get((run, key), lambda: _checked(run, spec, states, moments))


def cached_inputs(spec: EditGraphSpec, states: Mapping[str, Value]) -> dict[str, Value]:
    """The states that an edit graph reads, by the names of its inputs."""
    return {f"cached.{item}": states[item] for item in spec.cached}


def _checked(run: str, spec: EditGraphSpec, states: Mapping[str, Value], moments: Moments) -> StatesRead:
    missing = read_ids(spec) - states.keys()
    if missing:
        raise RunError(
            f"Expected run {run!r} to keep all that an edit with {moments!r} GroupNorm moments reads, but it lacks "
            f"{len(missing)} states: it was made, or committed, with others. Make the base run, and the edits that are "
            f"committed, with {moments!r} GroupNorm moments."
        )
    return StatesRead(len(spec.cached), sum(states[item].nbytes for item in spec.cached))
