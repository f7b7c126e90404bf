"""Prepared inputs of edit graphs: computed when what they depend on is new, else those that are kept."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from retouch.bundle import EditGraphSpec, PreparedGroup
from retouch.engines import Value

if TYPE_CHECKING:
    from retouch.session._runtime import Runtime

Source = Literal["reused", "computed"]

_KEPT_BYTES = 256 * 2**20
"""What depends on conditions only is kept for all runs of a session, up to so many bytes."""

_KEPT_GROUPS = 4
"""What also depends on states is kept with its run: so many sets of conditions of every group."""


@dataclass(frozen=True, eq=False)
class Prepared:
    """Prepared inputs.

    Attributes:
        key: equal for equal contents of one run.
        values: the inputs by name.
        sources: per group, named after what it depends on, whether it was computed or reused.
    """

    key: str
    values: Mapping[str, Value]
    sources: Mapping[str, Source]


class PreparedCache:
    """Groups of prepared inputs by what they were computed from; those used last stay. Several threads may use one."""

    def __init__(self, budget: int = _KEPT_BYTES) -> None:
        """Keeps up to that many bytes, and the newest group whatever its size."""
        self._budget = budget
        self._lock = threading.Lock()
        self._groups: OrderedDict[str, Mapping[str, Value]] = OrderedDict()

    def find(self, key: str) -> Mapping[str, Value] | None:
        """The group under that key, or ``None``."""
        with self._lock:
            if key in self._groups:
                self._groups.move_to_end(key)
            return self._groups.get(key)

    def keep(self, key: str, values: Mapping[str, Value]) -> None:
        """Keeps a group, and forgets those used longest ago that there is no room for."""
        with self._lock:
            self._groups[key] = values
            while len(self._groups) > 1 and sum(map(_bytes, self._groups.values())) > self._budget:
                self._groups.popitem(last=False)


def prepare(
    runtime: Runtime, run: str, feeds: Mapping[str, Value], spec: EditGraphSpec, states: Mapping[str, Value]
) -> Prepared:
    """The prepared inputs of an edit graph for those feeds: every group kept for equal conditions, or computed now."""
    if spec.prep_file is None:
        return Prepared("", {}, {})
    keys: list[str] = []
    values: dict[str, Value] = {}
    sources: dict[str, Source] = {}
    for group in runtime.programs.prepared_groups(spec.prep_file):
        inputs = {name: feeds[name] for name in group.conditions}
        key = f"prepared.{spec.prep_file}.{group.name}.{_digest(inputs)}"
        found = _find(runtime, run, group, key)
        if found is None:
            program = runtime.programs.prep(spec.prep_file, group.outputs)
            made = program.run({**inputs, **{f"cached.{item}": states[item] for item in group.states}})
            _keep(runtime, run, group, key, made)
        values.update(made if found is None else found)
        sources[group.name] = "computed" if found is None else "reused"
        keys.append(key)
    return Prepared(";".join(keys), values, sources)


def _find(runtime: Runtime, run: str, group: PreparedGroup, key: str) -> Mapping[str, Value] | None:
    if group.states:
        return runtime.store.find(run, runtime.bundle.fingerprint, key)
    return runtime.prepared.find(key)


def _keep(runtime: Runtime, run: str, group: PreparedGroup, key: str, values: Mapping[str, Value]) -> None:
    if not group.states:
        runtime.prepared.keep(key, values)
        return
    store, bundle = runtime.store, runtime.bundle.fingerprint
    store.add(run, bundle, key, values)
    family = key.rpartition(".")[0]
    older = [name for name in store.parts(run, bundle) if name.rpartition(".")[0] == family]
    for name in older[:-_KEPT_GROUPS]:
        store.drop_part(run, name)


def _digest(values: Mapping[str, Value]) -> str:
    digests = "".join(f"{name}={values[name].digest};" for name in sorted(values))
    return hashlib.blake2b(digests.encode(), digest_size=16).hexdigest()


def _bytes(values: Mapping[str, Value]) -> int:
    return sum(value.nbytes for value in values.values())
