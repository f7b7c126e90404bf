"""The dense fallback: a full run, merged with the base run so that it means what an edit run means."""

from __future__ import annotations

import time
from collections.abc import Mapping

from retouch.bundle import CacheableSpec
from retouch.engines import Value
from retouch.region import ActiveRows, merged_output
from retouch.session._edit import Edit, Outcome
from retouch.session._mode import edit_spec
from retouch.session._run import OUTPUTS
from retouch.session._runtime import Runtime
from retouch.session._states_read import StatesRead


def dense_reason(runtime: Runtime, edit: Edit, *, fallback: bool) -> tuple[bool, str]:
    """Whether the edit is to take the dense fallback, and why or why not."""
    measured = runtime.manifest.break_even.get(runtime.engine.name)
    ratio = edit.region.flop_ratio
    if not fallback:
        return False, "the dense fallback is switched off"
    if measured is None:
        return False, f"no break-even has been measured on {runtime.engine.name}"
    if measured.flop_ratio > 1:
        return False, f"{ratio:.3f} of the FLOPs, and edits were measured to be faster up to all of them"
    if ratio < measured.flop_ratio:
        return False, f"{ratio:.3f} of the FLOPs, below the break-even of {measured.flop_ratio:.3f}"
    return True, f"{ratio:.3f} of the FLOPs, from the break-even of {measured.flop_ratio:.3f} on a full run is faster"


def refusal(runtime: Runtime, edit: Edit, *, record: bool) -> str | None:
    """Why the engine does not take the edit's rows, ``None`` if it does."""
    key, spec = edit_spec(runtime.manifest, edit.group_norm)
    program = runtime.programs.edit(spec, record=record)
    return program.refusal(runtime.regions.inputs(edit.region, key, spec))


def run_dense(runtime: Runtime, edit: Edit, *, record: bool) -> Outcome:
    """What a full run computes at the active rows; with ``record``, the updates of the cacheables too."""
    base = runtime.store.get(edit.run, runtime.bundle.fingerprint, OUTPUTS)
    start = time.perf_counter()
    program = runtime.programs.base(runtime.kept if record else ())
    binding = program.bind(edit.feeds)
    values = binding.run({})
    return Outcome(
        outputs=_merged(runtime, base, values, edit.region.active),
        updates=_updates(runtime, values, edit.region.active) if record else None,
        read=StatesRead(len(base), sum(value.nbytes for value in base.values())),
        prepared={},
        kernels=program.kernels,
        index_seconds=0.0,
        prepare_seconds=0.0,
        run_seconds=time.perf_counter() - start,
        notes=binding.notes,
    )


def _merged(
    runtime: Runtime, base: Mapping[str, Value], values: Mapping[str, Value], active: ActiveRows
) -> dict[str, Value]:
    merged = {}
    for output in runtime.manifest.outputs:
        name = output.tensor.name
        array = merged_output(output, base[name].numpy(), values[name].numpy(), active)
        merged[name] = runtime.engine.value(array)
    return merged


def _updates(runtime: Runtime, values: Mapping[str, Value], active: ActiveRows) -> dict[str, Value]:
    return {
        item: _update(runtime, runtime.manifest.cacheable(item), values[f"cacheable.{item}"], active)
        for item in runtime.kept
    }


def _update(runtime: Runtime, spec: CacheableSpec, full: Value, active: ActiveRows) -> Value:
    if spec.grid is None or spec.row_axis is None:
        return full
    return runtime.engine.taken(full, active.rows[spec.grid], spec.row_axis)
