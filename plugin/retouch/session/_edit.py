"""An edit run: the edit graph over a base run's states."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

from retouch.engines import Binding, Value
from retouch.session._bindings import BindingKey
from retouch.session._change import Change
from retouch.session._expectation import Expectation
from retouch.session._mode import Moments, edit_spec
from retouch.session._prepared import Source, prepare
from retouch.session._regions import ActiveRegion
from retouch.session._run import STATES
from retouch.session._runtime import Runtime
from retouch.session._samples import Samples
from retouch.session._states_read import StatesRead, cached_inputs


@dataclass(frozen=True, eq=False)
class Edit:
    """What an edit is to compute: the region's rows, for these feeds, over the states of that run.

    Attributes:
        run: id of the base run.
        feeds: all feeds, those that do not change as well.
        region: what to compute.
        change: where the editable feed changes.
        expectation: GroupNorm moments, and the error to expect.
        choice_seconds: how long that took to find.
        samples: which of the rows each sample of a batch may change, if that is not the same for all.
    """

    run: str
    feeds: Mapping[str, Value]
    region: ActiveRegion
    change: Change | None
    expectation: Expectation
    choice_seconds: float
    samples: Samples | None = None

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
        read: the states that were read: how many, and their size.
        prepared: where prepared inputs came from, by what they depend on.
        kernels: nodes per operator on kernels of Retouch's own.
        notes: what the engine says about the run.
        index_seconds: time for index inputs.
        prepare_seconds: time for prepared inputs.
        run_seconds: time for the rest.
    """

    outputs: Mapping[str, Value]
    updates: Mapping[str, Value] | None
    read: StatesRead
    prepared: Mapping[str, Source]
    kernels: Mapping[str, int]
    index_seconds: float
    prepare_seconds: float
    run_seconds: float
    notes: tuple[str, ...] = ()


def run_edit(runtime: Runtime, edit: Edit, *, record: bool) -> Outcome:
    """What the edit graph computes; with ``record``, the updates of the cacheables too."""
    key, spec = edit_spec(runtime.manifest, edit.group_norm)
    states = runtime.store.get(edit.run, runtime.bundle.fingerprint, STATES)
    read = runtime.states_read.of(edit.run, key, spec, states, edit.group_norm)
    start = time.perf_counter()
    indices = runtime.regions.inputs(edit.region, key, spec)
    indexed = time.perf_counter()
    prepared = prepare(runtime, edit.run, edit.feeds, spec, states)
    ready = time.perf_counter()
    place = BindingKey(edit.run, edit.region.active.fingerprint, key, record, prepared.key)
    program = runtime.programs.edit(spec, record=record)

    def bind() -> Binding:
        return program.bind({**cached_inputs(spec, states), **prepared.values, **indices})

    with runtime.bindings.lend(place, bind) as binding:
        values = binding.run(edit.feeds)
        notes = binding.notes
    return Outcome(
        outputs={output.tensor.name: values[output.tensor.name] for output in runtime.manifest.outputs},
        updates={item: values[f"update.{item}"] for item in spec.updates} if record else None,
        read=read,
        prepared=prepared.sources,
        kernels=program.kernels,
        index_seconds=indexed - start,
        prepare_seconds=ready - indexed,
        run_seconds=time.perf_counter() - ready,
        notes=notes,
    )
