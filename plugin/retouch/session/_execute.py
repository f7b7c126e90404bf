"""One edit from the choice of its path to its checked result."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial

from retouch.engines.ort import WeightStorage
from retouch.errors import EngineError
from retouch.session._commit import commit_edit
from retouch.session._dense import dense_reason, refusal, run_dense
from retouch.session._edit import Edit, Outcome, run_edit
from retouch.session._finite import check_finite
from retouch.session._kept_weights import weights_error
from retouch.session._report import Report, Seconds, summary
from retouch.session._result import Result
from retouch.session._run import OUTPUTS, Run, arrays
from retouch.session._runtime import Runtime
from retouch.session._samples import own_outputs
from retouch.session._spill import spill


def execute(runtime: Runtime, edit: Edit, start: float, *, fallback: bool, record: bool) -> Result:
    """The result of an edit that began at that time, on the path that is faster."""
    indexed = time.perf_counter() - start - edit.choice_seconds
    dense, reason = dense_reason(runtime, edit, fallback=fallback)
    refused = None if dense else refusal(runtime, edit, record=record)
    if refused is not None:
        if not fallback:
            raise EngineError(
                f"Expected an engine that takes the edit, but {refused}. Build one for more rows (--profile rows=all), "
                "or allow the dense fallback."
            )
        dense, reason = True, f"{refused}; a full run was made"
    outcome = _run(runtime, edit, dense=dense, record=record)
    return finish(runtime, edit, outcome, start, reason=reason, dense=dense, indexed=indexed)


def finish(
    runtime: Runtime,
    edit: Edit,
    outcome: Outcome,
    start: float,
    *,
    reason: str,
    dense: bool = False,
    indexed: float = 0.0,
    stacked: int = 1,
) -> Result:
    """The checked result of an edit that was computed.

    Args:
        runtime: the session's runtime.
        edit: the edit.
        outcome: what was computed.
        start: when the call began.
        reason: why that path was taken.
        dense: whether it was the dense fallback.
        indexed: time that active rows took before.
        stacked: number of edits in the same run.
    """
    outcome = _own(runtime, edit, outcome)
    if edit.samples is not None:
        reason += f"; computed where any of {len(edit.samples.active)} samples has its region"
    _check(runtime, outcome)
    checked = time.perf_counter()
    error = 0.0 if dense else runtime.expectations.after(edit.expectation, partial(_spill, runtime, edit, outcome))
    end = time.perf_counter()
    seconds = Seconds(
        total=end - start,
        index=indexed + outcome.index_seconds,
        prepare=outcome.prepare_seconds,
        run=outcome.run_seconds,
        choose=edit.choice_seconds + end - checked,
    )
    report = _report(runtime, edit, outcome, error, dense=dense, reason=reason, seconds=seconds, stacked=stacked)
    return Result(arrays(outcome.outputs), report, partial(_commit, runtime, edit, outcome, dense), outcome.outputs)


def _run(runtime: Runtime, edit: Edit, *, dense: bool, record: bool) -> Outcome:
    return run_dense(runtime, edit, record=record) if dense else run_edit(runtime, edit, record=record)


def _commit(runtime: Runtime, edit: Edit, outcome: Outcome, dense: bool) -> Run:
    if outcome.updates is None:
        outcome = _own(runtime, edit, _run(runtime, edit, dense=dense, record=True))
    return commit_edit(runtime, edit, outcome)


def _own(runtime: Runtime, edit: Edit, outcome: Outcome) -> Outcome:
    """What was computed, every sample within its own rows."""
    return replace(outcome, outputs=own_outputs(runtime, edit.run, edit.samples, outcome.outputs))


def _check(runtime: Runtime, outcome: Outcome) -> None:
    """Look for NaN and infinity; where the edit computed nothing, outputs are the base run's, which was checked."""
    for output in runtime.manifest.outputs:
        name = output.tensor.name
        check_finite(name, outcome.outputs[name].numpy())


def _spill(runtime: Runtime, edit: Edit, outcome: Outcome) -> float:
    """How much of what the first output with rows changes lies outside of the region."""
    output = next(output for output in runtime.manifest.outputs if output.grid is not None)
    assert output.grid is not None, "it has rows"
    base = runtime.store.get(edit.run, runtime.bundle.fingerprint, OUTPUTS)
    before, after = (values[output.tensor.name].numpy() for values in (base, outcome.outputs))
    return spill(before, after, output.axes, runtime.regions.inside(edit.region.region, output.grid))


def _report(
    runtime: Runtime,
    edit: Edit,
    outcome: Outcome,
    error: float | None,
    *,
    dense: bool,
    reason: str,
    seconds: Seconds,
    stacked: int,
) -> Report:
    weights = WeightStorage.FLOAT32 if dense else runtime.weights
    return Report(
        path="dense" if dense else "edit",
        reason=reason,
        active_rows=edit.region.active.counts(),
        area=edit.region.region.area,
        flop_ratio=edit.region.flop_ratio,
        group_norm=edit.group_norm,
        group_norm_reason=edit.expectation.reason,
        expected_error=error,
        expected_from="a full run was made" if dense else edit.expectation.basis,
        shift=edit.expectation.shift,
        policy=edit.region.region.policy,
        states_used=outcome.read.count,
        states_bytes=outcome.read.nbytes,
        prepared=summary(outcome.prepared),
        prepared_by=outcome.prepared,
        seconds=seconds,
        engine=runtime.engine.name,
        threads=runtime.engine.threads,
        kernels=outcome.kernels,
        ignored=0 if edit.change is None else edit.change.ignored,
        notes=outcome.notes,
        stacked=stacked,
        weights=weights,
        weights_error=weights_error(runtime.manifest, weights),
    )
