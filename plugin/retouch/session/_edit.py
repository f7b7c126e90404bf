"""An edit run: the edit graph over a base run's states."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from retouch.bundle import EditGraphSpec
from retouch.engines import Value
from retouch.errors import RunError
from retouch.session._bindings import BindingKey
from retouch.session._mode import GroupNormMode, edit_spec, read_ids
from retouch.session._regions import ActiveRegion
from retouch.session._report import Preparation
from retouch.session._run import STATES
from retouch.session._runtime import Runtime

_KEPT_PREPARATIONS = 4
"""So many sets of prepared inputs are kept per run: one per combination of conditions and GroupNorm mode."""

_PREPARED = "prepared."


@dataclass(frozen=True, eq=False)
class Edit:
    """What an edit is to compute: the region's rows, for these feeds, over the states of that run."""

    run: str
    feeds: Mapping[str, Value]
    region: ActiveRegion
    group_norm: GroupNormMode


@dataclass(frozen=True, eq=False)
class Outcome:
    """What was computed.

    Attributes:
        outputs: the model's outputs, inactive rows those of the base run.
        updates: if asked for, per cacheable id, its active rows or the new statistic.
        read: the states that were read.
        prepared: where prepared inputs came from.
        index_seconds: time for index inputs.
        prepare_seconds: time for prepared inputs.
        run_seconds: time for the rest.
    """

    outputs: Mapping[str, Value]
    updates: Mapping[str, Value] | None
    read: tuple[Value, ...]
    prepared: Preparation
    index_seconds: float
    prepare_seconds: float
    run_seconds: float


@dataclass(frozen=True, eq=False)
class Prepared:
    """Prepared inputs, the part of the run they are kept under, and where they came from."""

    part: str
    values: Mapping[str, Value]
    source: Preparation


def run_edit(runtime: Runtime, edit: Edit, *, record: bool) -> Outcome:
    """What the edit graph computes; with ``record``, the updates of the cacheables too."""
    key, spec = edit_spec(runtime.manifest, edit.group_norm)
    states = runtime.store.get(edit.run, runtime.bundle.fingerprint, STATES)
    check_kept(edit, spec, states)
    cached = named("cached.", spec.cached, states)
    start = time.perf_counter()
    indices = runtime.regions.inputs(edit.region, key, spec)
    indexed = time.perf_counter()
    prepared = prepare(runtime, edit, key, spec, states)
    ready = time.perf_counter()
    place = BindingKey(edit.run, edit.region.active.fingerprint, key, record, prepared.part)
    program = runtime.programs.edit(spec, record=record)
    with runtime.bindings.lend(place, lambda: program.bind({**cached, **prepared.values, **indices})) as binding:
        values = binding.run(edit.feeds)
    return Outcome(
        outputs={output.tensor.name: values[output.tensor.name] for output in runtime.manifest.outputs},
        updates={item: values[f"update.{item}"] for item in spec.updates} if record else None,
        read=tuple(cached.values()),
        prepared=prepared.source,
        index_seconds=indexed - start,
        prepare_seconds=ready - indexed,
        run_seconds=time.perf_counter() - ready,
    )


def prepare(runtime: Runtime, edit: Edit, key: str, spec: EditGraphSpec, states: Mapping[str, Value]) -> Prepared:
    """The prepared inputs for the edit's conditions: those kept with the run, or computed and kept now."""
    if spec.prep_file is None:
        return Prepared("", {}, "none")
    program = runtime.programs.prep(spec.prep_file)
    conditions = {name: edit.feeds[name] for name in program.inputs if name in edit.feeds}
    part = f"{_PREPARED}{key}.{_digest(conditions)}"
    kept = runtime.store.find(edit.run, runtime.bundle.fingerprint, part)
    if kept is not None:
        return Prepared(part, kept, "reused")
    values = program.run({**conditions, **named("cached.", spec.prep_cached, states)})
    _keep(runtime, edit.run, part, values)
    return Prepared(part, values, "computed")


def _keep(runtime: Runtime, run: str, part: str, values: Mapping[str, Value]) -> None:
    store, bundle = runtime.store, runtime.bundle.fingerprint
    store.add(run, bundle, part, values)
    older = [name for name in store.parts(run, bundle) if name.startswith(_PREPARED)]
    for name in older[:-_KEPT_PREPARATIONS]:
        store.drop_part(run, name)


def check_kept(edit: Edit, spec: EditGraphSpec, states: Mapping[str, Value]) -> None:
    missing = read_ids(spec) - states.keys()
    if missing:
        raise RunError(
            f"Expected run {edit.run!r} to keep all that an edit with group_norm={edit.group_norm!r} reads, but it "
            f"lacks {len(missing)} states: it was made, or committed, for another mode. "
            f"Make the base run, and the edits that are committed, with group_norm={edit.group_norm!r}."
        )


def named(prefix: str, ids: Iterable[str], states: Mapping[str, Value]) -> dict[str, Value]:
    return {f"{prefix}{item}": states[item] for item in ids}


def _digest(values: Mapping[str, Value]) -> str:
    digests = "".join(f"{name}={values[name].digest};" for name in sorted(values))
    return hashlib.blake2b(digests.encode(), digest_size=16).hexdigest()
