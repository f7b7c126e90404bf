"""Measures what edits err whose weights are kept as shorter numbers, and writes it into the manifest."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retouch.bundle import Bundle, Manifest, update_manifest
from retouch.calibrate._inputs import block_region, sample_feeds
from retouch.engines.ort import OrtEngine, WeightStorage
from retouch.session import EditSession, Result, weights_check
from retouch.states import StateStore

_AREA = 0.1

Arrays = Mapping[str, NDArray[Any]]


def calibrate_weights(
    bundle: Bundle | str | Path,
    *,
    threads: int | None = None,
    feeds: Arrays | None = None,
    progress: Callable[[str], None] | None = None,
) -> dict[WeightStorage, float]:
    """What an edit errs with weights kept as shorter numbers, also written into the manifest.

    By storage, the largest difference from the same edit with the model's own weights, as a share of the output's
    largest value; reports of edits repeat it. Nothing is measured without Retouch's kernels.

    Args:
        bundle: the bundle, or its directory.
        threads: threads per run; ``None`` leaves the choice to the engine.
        feeds: what to feed; ``None`` means noise and middling conditions.
        progress: called with a line before every storage.
    """
    opened = bundle if isinstance(bundle, Bundle) else Bundle.open(bundle)
    if not OrtEngine(threads=threads).kernels:
        return {}
    given = sample_feeds(opened.manifest) if feeds is None else feeds
    store = StateStore()
    exact = _edit(opened, WeightStorage.FLOAT32, threads, given, store)
    errors: dict[WeightStorage, float] = {}
    for weights in WeightStorage:
        if weights is not WeightStorage.FLOAT32:
            if progress is not None:
                progress(f"weights as {weights}")
            errors[weights] = _error(exact, _edit(opened, weights, threads, given, store))
    current = Bundle.open(opened.path, check="size").manifest
    measured = {weights_check(weights): error for weights, error in errors.items()}
    update_manifest(opened.path, current.replace(verification={**current.verification, **measured}))
    return errors


def _edit(bundle: Bundle, weights: WeightStorage, threads: int | None, feeds: Arrays, store: StateStore) -> Result:
    manifest = bundle.manifest
    region = block_region(manifest.grid(manifest.editable.grid).dims, _AREA, "balanced")
    with EditSession(bundle, threads=threads, group_norm="cached", store=store, weights=weights) as session:
        # The states of one base run serve all storages: it has the model's own weights whatever edits have.
        run = next(iter(session.runs()), None) or session.base(feeds).id
        return session.edit(run, _changed(manifest, feeds), region=region, fallback=False)


def _changed(manifest: Manifest, feeds: Arrays) -> dict[str, NDArray[Any]]:
    """Another content for the editable input: noise; of ids, 1 in the place of 0 and 0 in that of others."""
    name = manifest.editable.input
    if np.dtype(feeds[name].dtype).kind != "f":
        return {name: np.where(feeds[name] == 0, 1, 0).astype(feeds[name].dtype)}
    return {name: sample_feeds(manifest, seed=1)[name]}


def _error(exact: Result, kept: Result) -> float:
    errors = []
    for name, wanted in exact.outputs.items():
        scale = float(np.abs(wanted.astype(np.float64)).max()) or 1.0
        errors.append(float(np.abs(wanted.astype(np.float64) - kept.outputs[name]).max()) / scale)
    return max(errors)
