"""An edit becomes a run of its own."""

from __future__ import annotations

from retouch.bundle import CacheableSpec, OutputSpec
from retouch.engines import Value
from retouch.region import ActiveRows, merged_output
from retouch.session._edit import Edit, Outcome
from retouch.session._mode import edit_spec, read_ids
from retouch.session._run import FEEDS, STATES, Run, keep_run
from retouch.session._runtime import Runtime


def commit_edit(runtime: Runtime, edit: Edit, outcome: Outcome) -> Run:
    """The run that a recorded edit becomes: the base run's states with the edit's updates merged in.

    Nothing prepared is taken over: it was computed from the base run's states.
    """
    assert outcome.updates is not None, "only a recorded edit can be committed"
    base = runtime.store.get(edit.run, runtime.bundle.fingerprint, STATES)
    # What this edit neither recomputed nor read says nothing about it: left in, a later edit would take it for current.
    read = read_ids(edit_spec(runtime.manifest, edit.group_norm)[1])
    states = {item: value for item, value in base.items() if item in read}
    for item, update in outcome.updates.items():
        if item in base:
            spec = runtime.manifest.cacheable(item)
            states[item] = _merged(runtime, spec, base[item], update, edit.region.active)
    return keep_run(runtime.store, runtime.bundle, _seen_feeds(runtime, edit), outcome.outputs, states)


def _seen_feeds(runtime: Runtime, edit: Edit) -> dict[str, Value]:
    """The feeds as the states saw them: of the editable input, inactive rows are still the base run's."""
    editable = runtime.manifest.editable
    tensor = next(spec for spec in runtime.manifest.inputs if spec.name == editable.input)
    base = runtime.store.get(edit.run, runtime.bundle.fingerprint, FEEDS)[editable.input].numpy()
    rows = OutputSpec(tensor, editable.grid, editable.axes)
    merged = merged_output(rows, base, edit.feeds[editable.input].numpy(), edit.region.active)
    return {**edit.feeds, editable.input: runtime.engine.value(merged)}


def _merged(runtime: Runtime, spec: CacheableSpec, base: Value, update: Value, active: ActiveRows) -> Value:
    """The cacheable with its active rows replaced, in fresh memory; a statistic is replaced as a whole."""
    if spec.grid is None or spec.row_axis is None:
        return update
    return runtime.engine.merged(base, update, active.rows[spec.grid], spec.row_axis)
