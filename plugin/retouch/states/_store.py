"""Whose states are kept, and what became of those that are not."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field

from retouch.engines import Value
from retouch.errors import RunError
from retouch.states._tier import HostTier, StateTier

_REMEMBERED = 4096
"""So many ids of runs that are gone are remembered, to say why they are."""


@dataclass
class _Entry:
    bundle: str
    parts: list[str] = field(default_factory=list)


class StateStore:
    """The states of base runs, by run id. Several threads and several sessions may share one.

    A run's values lie in named parts (its feeds, its outputs, its states, ...). Every part is kept for one bundle:
    asking for it on behalf of another bundle is an error, so that a state is never used with other weights.
    """

    def __init__(self, tier: StateTier | None = None, budget: int | None = None) -> None:
        """Keeps nothing yet.

        Args:
            tier: where to keep the values; ``None`` means in memory.
            budget: bytes that may be kept; beyond it the runs that were not used for longest are evicted.
        """
        self._tier = HostTier() if tier is None else tier
        self._budget = budget
        self._lock = threading.RLock()
        self._runs: OrderedDict[str, _Entry] = OrderedDict()
        self._gone: OrderedDict[str, str] = OrderedDict()

    @property
    def bytes(self) -> int:
        """The size of what is kept."""
        with self._lock:
            return self._tier.bytes

    def ids(self, bundle: str | None = None) -> tuple[str, ...]:
        """The ids of the runs that are kept, of that bundle only if one is named; the one used last comes last."""
        with self._lock:
            return tuple(run for run, entry in self._runs.items() if bundle in (None, entry.bundle))

    def holds(self, run: str) -> bool:
        """Whether the run is kept."""
        with self._lock:
            return run in self._runs

    def put(self, run: str, bundle: str, parts: Mapping[str, Mapping[str, Value]]) -> None:
        """Keep a new run with those parts.

        Raises:
            RunError: the run does not fit into the budget even alone.
        """
        size = sum(value.nbytes for values in parts.values() for value in values.values())
        if self._budget is not None and size > self._budget:
            raise RunError(
                f"Expected a run to fit into the store's budget of {self._budget} bytes, but run {run!r} takes {size}. "
                "Raise the budget."
            )
        with self._lock:
            self._runs[run] = _Entry(bundle, list(parts))
            for part, values in parts.items():
                self._tier.put(_key(run, part), values)
            self._fit(run)

    def add(self, run: str, bundle: str, part: str, values: Mapping[str, Value]) -> None:
        """Keep another part of a run for as long as there is room; a part can be computed again, so it may go at once.

        Raises:
            RunError: the run is unknown, was dropped or evicted, or belongs to another bundle.
        """
        with self._lock:
            entry = self._require(run, bundle)
            self._tier.put(_key(run, part), values)
            if part not in entry.parts:
                entry.parts.append(part)
            self._fit(run)
            if self._excess() > 0:
                self.drop_part(run, part)

    def get(self, run: str, bundle: str, part: str) -> Mapping[str, Value]:
        """The values of one part of a run.

        Raises:
            RunError: the run is unknown, was dropped or evicted, belongs to another bundle, or has no such part.
        """
        values = self.find(run, bundle, part)
        if values is None:
            raise RunError(
                f"Expected run {run!r} to keep {part}, but it keeps only {', '.join(self.parts(run, bundle))}. "
                "Make the base run again with record=True."
            )
        return values

    def find(self, run: str, bundle: str, part: str) -> Mapping[str, Value] | None:
        """The values of one part of a run, or ``None`` if the run has no such part.

        Raises:
            RunError: the run is unknown, was dropped or evicted, or belongs to another bundle.
        """
        with self._lock:
            self._require(run, bundle)
            self._runs.move_to_end(run)
            return self._tier.get(_key(run, part))

    def parts(self, run: str, bundle: str) -> tuple[str, ...]:
        """The names of a run's parts, the oldest first."""
        with self._lock:
            return tuple(self._require(run, bundle).parts)

    def drop_part(self, run: str, part: str) -> None:
        """Forget one part of a run, if it is there."""
        with self._lock:
            entry = self._runs.get(run)
            if entry is not None and part in entry.parts:
                entry.parts.remove(part)
                self._tier.drop(_key(run, part))

    def relieve(self, size: int) -> int:
        """Move runs to where there is more room, those not used for longest first, until so many bytes became free.

        Returns: the bytes that became free; 0 if nothing can be moved.
        """
        freed = 0
        with self._lock:
            for key in [_key(run, part) for run, entry in self._runs.items() for part in entry.parts]:
                if freed >= size:
                    break
                freed += self._tier.relieve(key)
        return freed

    def drop(self, run: str) -> None:
        """Forget a run, if it is kept."""
        self._forget(run, "was dropped")

    def clear(self) -> None:
        """Forget all runs."""
        for run in self.ids():
            self.drop(run)

    def _forget(self, run: str, reason: str) -> None:
        with self._lock:
            entry = self._runs.pop(run, None)
            if entry is None:
                return
            for part in entry.parts:
                self._tier.drop(_key(run, part))
            self._gone[run] = reason
            while len(self._gone) > _REMEMBERED:
                self._gone.popitem(last=False)

    def _require(self, run: str, bundle: str) -> _Entry:
        entry = self._runs.get(run)
        if entry is None:
            reason = self._gone.get(run, "is not known to this session's store")
            raise RunError(
                f"Expected the id of a run that is kept, but run {run!r} {reason}. "
                f"Make the base run again, or use one of: {', '.join(self.ids(bundle)) or 'none is kept'}."
            )
        self._check_bundle(run, entry, bundle)
        return entry

    def _check_bundle(self, run: str, entry: _Entry, bundle: str) -> None:
        if entry.bundle != bundle:
            raise RunError(
                f"Expected a run of bundle {bundle[:12]}, but run {run!r} was made with bundle {entry.bundle[:12]}. "
                "States fit only the bundle that they come from: make a base run with this one."
            )

    def _excess(self) -> int:
        return 0 if self._budget is None else self._tier.bytes - self._budget

    def _fit(self, newest: str) -> None:
        """Evict runs, those not used for longest first, until the budget is kept or only the newest is left."""
        self._runs.move_to_end(newest)
        while self._excess() > 0 and len(self._runs) > 1:
            self._forget(next(iter(self._runs)), f"was evicted to keep the states within {self._budget} bytes")


def _key(run: str, part: str) -> str:
    return f"{run}/{part}"
