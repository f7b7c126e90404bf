"""A run that edits can be based on."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from numpy.typing import NDArray

from retouch import __version__
from retouch.bundle import Bundle
from retouch.engines import Value
from retouch.files import relative_path
from retouch.states import RunRecord, StateStore, write_run

FEEDS = "feeds"
OUTPUTS = "outputs"
STATES = "states"


@dataclass(frozen=True, eq=False)
class Run:
    """A run whose states are kept under its id. It is a handle: dropping the run, not this object, frees the states.

    Attributes:
        id: the run's id.
        bundle_fingerprint: the fingerprint of the bundle that it was made with.
        feeds: what was fed (read-only arrays).
        outputs: the model's outputs (read-only arrays).
    """

    id: str
    bundle_fingerprint: str
    feeds: Mapping[str, NDArray[Any]] = field(repr=False)
    outputs: Mapping[str, NDArray[Any]] = field(repr=False)
    _store: StateStore = field(repr=False)
    _bundle_path: Path = field(repr=False)

    @property
    def states(self) -> Mapping[str, Value]:
        """The kept values, by cacheable id."""
        return self._store.get(self.id, self.bundle_fingerprint, STATES)

    @property
    def kept(self) -> bool:
        """Whether the states are still kept."""
        return self._store.holds(self.id)

    @property
    def bytes(self) -> int:
        """The size of the states."""
        return sum(value.nbytes for value in self.states.values())

    def save(self, path: str | os.PathLike[str], *, extend: Callable[[Path], None] | None = None) -> None:
        """Write the run into a directory, in one step, for :meth:`EditSession.load_run`.

        Args:
            path: the directory; a run directory that is there is replaced.
            extend: called with the directory before it is put in place, to put further files into it.

        Raises:
            RunError: the run was dropped, or was not recorded.
            RunFileError: it cannot be written, or the directory holds something else.
        """
        target = Path(path).resolve()
        kept = {part: self._store.get(self.id, self.bundle_fingerprint, part) for part in (FEEDS, OUTPUTS, STATES)}
        parts = {part: {name: value.numpy() for name, value in values.items()} for part, values in kept.items()}
        where = relative_path(self._bundle_path.resolve(), target)
        write_run(target, RunRecord(self.id, where, self.bundle_fingerprint, f"retouch {__version__}"), parts, extend)

    def close(self) -> None:
        """Drop the run; edits can no longer be based on it. Dropping it twice does nothing."""
        self._store.drop(self.id)


def keep_run(
    store: StateStore,
    bundle: Bundle,
    feeds: Mapping[str, Value],
    outputs: Mapping[str, Value],
    states: Mapping[str, Value] | None,
) -> Run:
    """The run with those values, kept under a new id; without states no edit can be based on it."""
    parts = {FEEDS: feeds, OUTPUTS: outputs} | ({} if states is None else {STATES: states})
    run_id = f"run-{secrets.token_hex(6)}"
    store.put(run_id, bundle.fingerprint, parts)
    return kept_run(store, bundle, run_id)


def kept_run(store: StateStore, bundle: Bundle, run_id: str) -> Run:
    """The run that a store keeps under that id."""
    feeds, outputs = (arrays(store.get(run_id, bundle.fingerprint, part)) for part in (FEEDS, OUTPUTS))
    return Run(run_id, bundle.fingerprint, feeds, outputs, store, bundle.path)


def arrays(values: Mapping[str, Value]) -> Mapping[str, NDArray[Any]]:
    """The values as read-only arrays."""
    return MappingProxyType({name: value.numpy() for name, value in values.items()})


def states_of(values: Mapping[str, Value]) -> dict[str, Value]:
    """The states among a recording base run's outputs."""
    prefix = "cacheable."
    return {name.removeprefix(prefix): value for name, value in values.items() if name.startswith(prefix)}
