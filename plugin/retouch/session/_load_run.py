"""A run comes back from disk."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from retouch.bundle import CacheableSpec, Manifest, TensorSpec
from retouch.errors import RunError, RunFileError
from retouch.session._run import FEEDS, OUTPUTS, STATES, Run, kept_run
from retouch.session._runtime import Runtime
from retouch.states import RunRecord, read_record, read_run

Parts = Mapping[str, Mapping[str, NDArray[Any]]]
Specs = Mapping[str, Mapping[str, TensorSpec | CacheableSpec]]


def load_run(runtime: Runtime, directory: Path) -> Run:
    """The run in a directory, kept under the id that it had."""
    record = read_record(directory)
    _check_bundle(runtime, record, directory)
    # An id stands for the same values for ever, and bindings to them may be alive.
    if not runtime.store.holds(record.run_id):
        specs = _specs(runtime.manifest)
        parts = read_run(directory, record, {part: _dtypes(named) for part, named in specs.items()})
        _check_arrays(directory, parts, specs)
        values = {
            part: {name: runtime.engine.value(array) for name, array in arrays.items()}
            for part, arrays in parts.items()
        }
        runtime.store.put(record.run_id, runtime.bundle.fingerprint, values)
    return kept_run(runtime.store, runtime.bundle, record.run_id)


def _check_bundle(runtime: Runtime, record: RunRecord, directory: Path) -> None:
    bundle = runtime.bundle
    if record.bundle_fingerprint != bundle.fingerprint:
        raise RunError(
            f"Expected a run of bundle {bundle.fingerprint[:12]} ({bundle.path}), but the run in {directory} was made "
            f"with bundle {record.bundle_fingerprint[:12]} (then at {record.bundle_path(directory)}). States fit only "
            "the bundle that they come from: open that one, or make the base run again with this one."
        )


def _specs(manifest: Manifest) -> Specs:
    return {
        FEEDS: {spec.name: spec for spec in manifest.inputs},
        OUTPUTS: {output.tensor.name: output.tensor for output in manifest.outputs},
        STATES: {spec.id: spec for spec in manifest.cacheables},
    }


def _dtypes(specs: Mapping[str, TensorSpec | CacheableSpec]) -> dict[str, str]:
    return {name: spec.dtype for name, spec in specs.items()}


def _check_arrays(directory: Path, parts: Parts, specs: Specs) -> None:
    """Shapes, and that nothing but states is missing: which of these are kept depends on the GroupNorm mode."""
    for part, arrays in parts.items():
        missing = set(specs[part]) - set(arrays)
        if missing and part != STATES:
            raise _unfit(directory, f"{part} {_listed(specs[part])}", _listed(arrays))
        for name, array in arrays.items():
            if array.shape != specs[part][name].shape:
                raise _unfit(directory, f"{name!r} of shape {specs[part][name].shape}", str(array.shape))


def _unfit(directory: Path, expected: str, got: str) -> RunFileError:
    return RunFileError(f"Expected the run in {directory} to have {expected}, got {got}. Make the base run again.")


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)) or "none"
