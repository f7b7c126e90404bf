"""Measures what edits err under each GroupNorm mode, and writes it into the manifest."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retouch.bundle import Bundle, Manifest, MomentsSpec, OutputSpec, update_manifest
from retouch.calibrate._held_out import FOLDS, held_out_correlation
from retouch.calibrate._inputs import sample_feeds
from retouch.calibrate._moment_edits import MomentExample, moment_edits
from retouch.engines.ort import Provider
from retouch.region import Region
from retouch.session import MOMENTS, EditSession, Run, inside, spill

_DIGITS = 5
_MADE_UP = 12
"""Base runs of noise where no examples are given."""
_PATIENCE = 4
"""How many times its time a calibration may take to be one at all: machines that are busy for a while are slower."""


@dataclass(frozen=True)
class _Measured:
    """One edit: its shift, and per mode its error and its spill."""

    shift: tuple[float, ...]
    errors: tuple[float, ...]
    spills: tuple[float, ...]


def calibrate_moments(
    bundle: Bundle | str | Path,
    examples: Sequence[MomentExample] | None = None,
    *,
    providers: Sequence[Provider] | None = None,
    threads: int | None = None,
    seconds: float | None = None,
    progress: Callable[[str], None] | None = None,
) -> MomentsSpec | None:
    """What edits of a bundle err under each GroupNorm mode, also written into its manifest.

    ``None``, and nothing is written, for a model that leaves no choice (without GroupNorm, or with an editable input
    of integers) and where time is too short by far. Every edit takes a full run and an edit run per mode.

    Args:
        bundle: the bundle, or its directory.
        examples: what the model is fed; a trained model errs on noise as it does on nothing else, so give it what it
            was trained for, under all conditions that will be used. ``None`` means noise and middling conditions.
        providers: execution providers by preference; ``None`` means the CPU.
        threads: threads per run; ``None`` leaves the choice to the engine.
        seconds: time to spend; no base run begins that would probably exceed it, except for the five that a calibration
            needs, which may take four times as long. ``None`` means all the time it takes.
        progress: called with a line before every base run.
    """
    opened = bundle if isinstance(bundle, Bundle) else Bundle.open(bundle)
    if not _has_choice(opened.manifest):
        return None
    given = _made_up(opened.manifest) if examples is None else examples
    plain = Bundle(opened.path, opened.manifest.replace(moments=None))
    measured: list[tuple[int, _Measured]] = []
    with EditSession(plain, providers, threads, group_norm="corrected") as session:
        session.preload()
        begun = time.perf_counter()
        for number, example in enumerate(given):
            if number and not _fits(time.perf_counter() - begun, number, seconds):
                break
            if progress is not None:
                progress(f"GroupNorm moments, base run {number + 1} of {len(given)}")
            measured += [(number, edit) for edit in _measure(session, example, np.random.default_rng(number))]
    if len({number for number, _ in measured}) < min(FOLDS, len(given)):
        return None
    spec = _spec(opened.manifest, measured)
    current = Bundle.open(opened.path, check="size").manifest
    update_manifest(opened.path, current.replace(moments=spec))
    return spec


def _fits(spent: float, done: int, seconds: float | None) -> bool:
    """Whether there is time for another base run, and some patience for as many as a calibration needs."""
    if seconds is None:
        return True
    each = spent / done
    return each * FOLDS <= _PATIENCE * seconds if done < FOLDS else each * (done + 1) <= seconds


def _has_choice(manifest: Manifest) -> bool:
    editable = next(spec for spec in manifest.inputs if spec.name == manifest.editable.input)
    has_rows = any(output.grid is not None for output in manifest.outputs)
    return "corrected" in manifest.edits and has_rows and np.dtype(editable.dtype).kind == "f"


def _made_up(manifest: Manifest) -> list[MomentExample]:
    name = manifest.editable.input
    feeds = [sample_feeds(manifest, seed) for seed in range(2 * _MADE_UP)]
    return [MomentExample(one, [other[name]]) for one, other in zip(feeds[::2], feeds[1::2], strict=True)]


def _measure(session: EditSession, example: MomentExample, generator: np.random.Generator) -> Iterator[_Measured]:
    """Per edit of a base run its shift and its error under each mode; edits that change nothing are left out."""
    manifest = session.bundle.manifest
    run = session.base(example.feeds)
    conditions = [float(run.feeds[name].reshape(())) for name in _single_numbers(manifest)]
    for region, fed in moment_edits(manifest, example, generator):
        change = {manifest.editable.input: fed}
        full = session.base({**run.feeds, **change}, record=False)
        results = [session.edit(run, change, region=region, group_norm=moments, fallback=False) for moments in MOMENTS]
        shift = results[0].report.shift
        errors = [relative_error(manifest, region, run, result.outputs, full.outputs) for result in results]
        if shift is not None and all(error is not None for error in errors):
            spills = _rounded([_spill(manifest, region, run, result.outputs) for result in results])
            found = tuple(error for error in errors if error is not None)
            yield _Measured(_rounded(shift.features(conditions)), found, spills)
        full.close()
    session.drop(run)


def relative_error(
    manifest: Manifest,
    region: Region,
    run: Run,
    got: Mapping[str, NDArray[Any]],
    expected: Mapping[str, NDArray[Any]],
) -> float | None:
    """What ``Report.expected_error`` foresees: the error inside over the change inside, of the first output with rows.

    ``None`` if a full recomputation changes nothing there.

    Args:
        manifest: the bundle's manifest.
        region: the region.
        run: the base run.
        got: the edit's outputs.
        expected: those of a full recomputation.
    """
    output, mask = _judged(manifest, region)
    name = output.tensor.name
    base, edit, full = (
        np.moveaxis(values[name].astype(np.float64), output.axes, range(len(output.axes)))[mask]
        for values in (run.outputs, got, expected)
    )
    change = float(np.abs(full - base).mean())
    return float(np.abs(edit - full).mean()) / change if change > 0 else None


def _judged(manifest: Manifest, region: Region) -> tuple[OutputSpec, NDArray[np.bool_]]:
    """The first output with rows, and the region's own positions on it."""
    output = next(output for output in manifest.outputs if output.grid is not None)
    assert output.grid is not None
    return output, inside(manifest, region, output.grid)


def _spill(manifest: Manifest, region: Region, run: Run, got: Mapping[str, NDArray[Any]]) -> float:
    output, mask = _judged(manifest, region)
    return spill(run.outputs[output.tensor.name], got[output.tensor.name], output.axes, mask)


def _single_numbers(manifest: Manifest) -> tuple[str, ...]:
    return tuple(
        spec.name
        for spec in manifest.inputs
        if spec.name != manifest.editable.input and np.prod(spec.shape) == 1 and np.dtype(spec.dtype).kind in "iuf"
    )


def _spec(manifest: Manifest, measured: Sequence[tuple[int, _Measured]]) -> MomentsSpec:
    edits = [edit for _, edit in measured]
    spec = MomentsSpec(
        conditions=_single_numbers(manifest),
        shifts=tuple(edit.shift for edit in edits),
        errors=_by_mode([[float(f"{error:.5g}") for error in edit.errors] for edit in edits]),
        correlation=0.0,
        spills=_by_mode([edit.spills for edit in edits]),
    )
    return replace(spec, correlation=held_out_correlation(spec, [number for number, _ in measured]))


def _by_mode(values: Sequence[Sequence[float]]) -> dict[str, tuple[float, ...]]:
    """Values per edit and mode, as one tuple per mode."""
    return {moments: tuple(one[place] for one in values) for place, moments in enumerate(MOMENTS)}


def _rounded(values: Sequence[float]) -> tuple[float, ...]:
    return tuple(round(value, _DIGITS) for value in values)
