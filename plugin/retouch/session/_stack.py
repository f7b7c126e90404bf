"""Several edits of one base run in one run of the stacked graph."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retouch.bundle import EditGraphSpec, OutputSpec, StackSpec
from retouch.engines import Binding, Value
from retouch.errors import NonFiniteError
from retouch.region import active_part, with_rows
from retouch.session._bindings import BindingKey
from retouch.session._edit import Edit, Outcome
from retouch.session._execute import execute, finish
from retouch.session._mode import edit_spec
from retouch.session._prepared import prepare
from retouch.session._result import Result
from retouch.session._run import OUTPUTS, STATES
from retouch.session._runtime import Runtime
from retouch.session._states_read import cached_inputs

_LARGEST_EDIT, _LARGEST_STACK = 0.05, 0.25
"""FLOPs of an edit that shares its run, and of a stack, as shares of a full run's. Small edits gain by reading weights
together; in large ones that is a small part, and every row of a stack passes over the keys of all edits (measured on a
DiT of 1,024 tokens: 8 edits of 2 % cost .63 of 8 runs, 3 of 10 % cost 1.19)."""


def execute_many(runtime: Runtime, edits: Sequence[Edit], start: float, *, fallback: bool) -> list[Result]:
    """The results of edits of one run that began at that time, in their order; as many as pays share a run."""
    against = _reason_against(edits, runtime.manifest.editable.input)
    groups = [[place] for place in range(len(edits))] if against is not None else _groups(runtime, edits)
    results: dict[int, Result] = {}
    for places in groups:
        group = [edits[place] for place in places]
        reason = against or _refusal(runtime, group[0]) or _no_gain(runtime, edits, group[0])
        refused = _rows_refusal(runtime, group) if len(group) > 1 else None
        if refused is not None:
            reason = refused
        elif len(group) > 1:
            try:
                results.update(zip(places, _execute_stack(runtime, group, start), strict=True))
                continue
            except NonFiniteError:
                reason = "values were not finite in a shared run"
        alone = (_execute_alone(runtime, edit, reason, fallback=fallback) for edit in group)
        results.update(zip(places, alone, strict=True))
    return [results[place] for place in range(len(edits))]


def _execute_alone(runtime: Runtime, edit: Edit, reason: str, *, fallback: bool) -> Result:
    result = execute(runtime, edit, time.perf_counter(), fallback=fallback, record=False)
    return replace(result, report=replace(result.report, reason=f"{result.report.reason}; on its own: {reason}"))


def _key(runtime: Runtime, edit: Edit) -> str:
    """The moments under which the manifest has an edit's graphs."""
    return edit_spec(runtime.manifest, edit.group_norm)[0]


def _refusal(runtime: Runtime, edit: Edit) -> str | None:
    """Why there is no graph that computes an edit together with others, or ``None``."""
    stack = runtime.manifest.stacked.get(_key(runtime, edit), StackSpec(reason="it was exported without one"))
    if stack.graph is None:
        return f"the model has no stacked graph for {edit.group_norm} moments ({stack.reason})"
    return runtime.engine.refusal(runtime.bundle.path / stack.graph.file)


def _no_gain(runtime: Runtime, edits: Sequence[Edit], edit: Edit) -> str:
    """Why an edit that could share its run does not."""
    key = _key(runtime, edit)
    if sum(_key(runtime, other) == key for other in edits) == 1:
        return f"no other edit takes {edit.group_norm} moments"
    return "it does not pay to share its run"


def _groups(runtime: Runtime, edits: Sequence[Edit]) -> list[list[int]]:
    """The places of the edits that share a run: those with the same moments, as many as pay."""
    groups: list[list[int]] = []
    latest: dict[str, tuple[list[int], float]] = {}
    for place, edit in enumerate(edits):
        key, ratio = _key(runtime, edit), edit.region.flop_ratio
        group, room = latest.get(key, ([], 0.0))
        if ratio > room:
            group, room = [], 0.0
            groups.append(group)
            if ratio <= _LARGEST_EDIT and _refusal(runtime, edit) is None:
                room = _LARGEST_STACK
        group.append(place)
        latest[key] = (group, room - ratio)
    return groups


def _reason_against(edits: Sequence[Edit], editable: str) -> str | None:
    """Why edits cannot share a run, whatever their moments, or ``None``."""
    if len(edits) < 2:
        return "there is no other edit to share a run with"
    digests = {tuple(value.digest for name, value in edit.feeds.items() if name != editable) for edit in edits}
    return "the edits have different conditions" if len(digests) > 1 else None


def _rows_refusal(runtime: Runtime, edits: Sequence[Edit]) -> str | None:
    """Why the engine does not take so many rows together, ``None`` if it does."""
    spec = runtime.manifest.stacked[_key(runtime, edits[0])].graph
    assert spec is not None
    program = runtime.programs.edit(spec, record=False)
    return program.refusal(runtime.regions.stacked_inputs([edit.region for edit in edits], spec))


def _execute_stack(runtime: Runtime, edits: Sequence[Edit], start: float) -> list[Result]:
    spec = runtime.manifest.stacked[_key(runtime, edits[0])].graph
    assert spec is not None
    outcomes = list(_run_stack(runtime, edits, spec))
    return [
        finish(runtime, edit, outcome, start, reason="computed together", stacked=len(edits))
        for edit, outcome in zip(edits, outcomes, strict=True)
    ]


def _run_stack(runtime: Runtime, edits: Sequence[Edit], spec: EditGraphSpec) -> Iterator[Outcome]:
    first, fingerprint = edits[0], runtime.bundle.fingerprint
    states = runtime.store.get(first.run, fingerprint, STATES)
    read = runtime.states_read.of(first.run, spec.file, spec, states, first.group_norm)
    start = time.perf_counter()
    indices = runtime.regions.stacked_inputs([edit.region for edit in edits], spec)
    indexed = time.perf_counter()
    prepared = prepare(runtime, first.run, first.feeds, spec, states)
    ready = time.perf_counter()
    rows = ".".join(edit.region.active.fingerprint for edit in edits)
    place = BindingKey(first.run, rows, spec.file, False, prepared.key)
    program = runtime.programs.edit(spec, record=False)

    def bind() -> Binding:
        return program.bind({**cached_inputs(spec, states), **prepared.values, **indices})

    with runtime.bindings.lend(place, bind) as binding:
        values = binding.run({**first.feeds, **_stacked_feed(runtime, edits)})
        notes = binding.notes
    merged = _split(runtime, edits, values)
    seconds = time.perf_counter() - ready
    for outputs in merged:
        times = (indexed - start, ready - indexed, seconds)
        yield Outcome(outputs, None, read, prepared.sources, program.kernels, *times, notes)


def _stacked_feed(runtime: Runtime, edits: Sequence[Edit]) -> dict[str, Value]:
    """The active rows of every edit's editable feed."""
    editable = runtime.manifest.editable
    tensor = next(spec for spec in runtime.manifest.inputs if spec.name == editable.input)
    spec = OutputSpec(tensor, editable.grid, editable.axes)
    parts = [active_part(spec, edit.feeds[editable.input].numpy(), edit.region.active) for edit in edits]
    sizes = [size for axis, size in enumerate(tensor.shape) if axis not in editable.axes and size != 1]
    rows = np.ascontiguousarray(np.concatenate(parts).reshape(-1, *sizes))
    return {f"stacked.{editable.input}": runtime.engine.value(rows)}


def _split(runtime: Runtime, edits: Sequence[Edit], values: Mapping[str, Value]) -> list[dict[str, Value]]:
    """Per edit the model's outputs: its active rows in a copy of the base run's."""
    base = runtime.store.get(edits[0].run, runtime.bundle.fingerprint, OUTPUTS)
    merged: list[dict[str, Value]] = [{} for _ in edits]
    for output in runtime.manifest.outputs:
        name = output.tensor.name
        for place, edit, rows in zip(merged, edits, _parts(output, edits, values[name].numpy()), strict=True):
            array = with_rows(output, base[name].numpy(), rows, edit.region.active)
            place[name] = runtime.engine.value(array)
    return merged


def _parts(output: OutputSpec, edits: Sequence[Edit], rows: NDArray[Any]) -> list[NDArray[Any]]:
    assert output.grid is not None
    counts = [edit.region.active.rows[output.grid].size for edit in edits]
    return np.split(rows, np.cumsum(counts)[:-1])
