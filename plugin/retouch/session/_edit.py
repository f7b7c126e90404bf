"""An edit run: the edit graph over a base run's states."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from retouch.bundle import EditGraphSpec
from retouch.engines import Value
from retouch.errors import RunError
from retouch.session._bindings import BindingKey
from retouch.session._expectation import Expectation
from retouch.session._mode import Moments, edit_spec, read_ids
from retouch.session._prepared import Source, prepare
from retouch.session._regions import ActiveRegion
from retouch.session._run import STATES
from retouch.session._runtime import Runtime


@dataclass(frozen=True, eq=False)
class Edit:
    """What an edit is to compute: the region's rows, for these feeds, over the states of that run."""

    run: str
    feeds: Mapping[str, Value]
    region: ActiveRegion
    expectation: Expectation

    @property
    def group_norm(self) -> Moments:
        """The moments that GroupNorm uses."""
        return self.expectation.moments


@dataclass(frozen=True, eq=False)
class Outcome:
    """What was computed.

    Attributes:
        outputs: the model's outputs, inactive rows those of the base run.
        updates: if asked for, per cacheable id, its active rows or the new statistic.
        read: the states that were read.
        prepared: where prepared inputs came from, by what they depend on.
        kernels: nodes per operator on kernels of Retouch's own.
        index_seconds: time for index inputs.
        prepare_seconds: time for prepared inputs.
        run_seconds: time for the rest.
    """

    outputs: Mapping[str, Value]
    updates: Mapping[str, Value] | None
    read: tuple[Value, ...]
    prepared: Mapping[str, Source]
    kernels: Mapping[str, int]
    index_seconds: float
    prepare_seconds: float
    run_seconds: float


def run_edit(runtime: Runtime, edit: Edit, *, record: bool) -> Outcome:
    """What the edit graph computes; with ``record``, the updates of the cacheables too."""
    key, spec = edit_spec(runtime.manifest, edit.group_norm)
    states = runtime.store.get(edit.run, runtime.bundle.fingerprint, STATES)
    check_kept(edit, spec, states)
    cached = named("cached.", spec.cached, states)
    start = time.perf_counter()
    indices = runtime.regions.inputs(edit.region, key, spec)
    indexed = time.perf_counter()
    prepared = prepare(runtime, edit.run, edit.feeds, spec, states)
    ready = time.perf_counter()
    place = BindingKey(edit.run, edit.region.active.fingerprint, key, record, prepared.key)
    program = runtime.programs.edit(spec, record=record)
    with runtime.bindings.lend(place, lambda: program.bind({**cached, **prepared.values, **indices})) as binding:
        values = binding.run(edit.feeds)
    return Outcome(
        outputs={output.tensor.name: values[output.tensor.name] for output in runtime.manifest.outputs},
        updates={item: values[f"update.{item}"] for item in spec.updates} if record else None,
        read=tuple(cached.values()),
        prepared=prepared.sources,
        kernels=program.kernels,
        index_seconds=indexed - start,
        prepare_seconds=ready - indexed,
        run_seconds=time.perf_counter() - ready,
    )


def check_kept(edit: Edit, spec: EditGraphSpec, states: Mapping[str, Value]) -> None:
    missing = read_ids(spec) - states.keys()
    if missing:
        raise RunError(
            f"Expected run {edit.run!r} to keep all that an edit with {edit.group_norm!r} GroupNorm moments reads, but "
            f"it lacks {len(missing)} states: it was made, or committed, with others. Make the base run, and the edits "
            f"that are committed, with {edit.group_norm!r} GroupNorm moments."
        )


def named(prefix: str, ids: Iterable[str], states: Mapping[str, Value]) -> dict[str, Value]:
    return {f"{prefix}{item}": states[item] for item in ids}
