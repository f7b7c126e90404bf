"""Whether what a manifest names is there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import ml_dtypes  # noqa: F401 (registers bfloat16 and its like with numpy)
import numpy as np

from retouch.bundle._grid_faults import grid_faults
from retouch.bundle._manifest import EditGraphSpec, Manifest
from retouch.bundle._measured import MomentsSpec
from retouch.errors import BundleError


def check_references(manifest: Manifest, where: Path) -> None:
    """Checks that grids, inputs, cacheables, neighbourhoods, dtypes and files that are named exist.

    Raises:
        BundleError: names the first that does not.
    """
    fault = next(_faults(manifest), None)
    if fault is not None:
        raise BundleError(f"{where} {fault}: it was changed by hand or written by something else. Export again.")


def _faults(manifest: Manifest) -> Iterator[str]:
    yield from grid_faults(manifest.grids)
    grids = {grid.id: grid for grid in manifest.grids}
    if manifest.editable.grid not in grids:
        yield f"names the editable grid {manifest.editable.grid!r}, which it does not describe"
    if manifest.editable.input not in {spec.name for spec in manifest.inputs}:
        yield f"names the editable input {manifest.editable.input!r}, which is none of the inputs"
    if not manifest.outputs or "cached" not in manifest.edits:
        yield "has no outputs, or no edit graph 'cached'"
    if not set(manifest.stacked) <= set(manifest.edits):
        yield "stacks edits of GroupNorm modes that it has no edit graphs of"
    unknown = [output.grid for output in manifest.outputs if output.grid is not None and output.grid not in grids]
    unknown += [grid for spec in manifest.neighbourhoods for grid in (spec.source, spec.target) if grid not in grids]
    yield from (f"names the grid {grid!r}, which it does not describe" for grid in unknown)
    tensors = [*manifest.inputs, *(output.tensor for output in manifest.outputs)]
    for dtype in (*(tensor.dtype for tensor in tensors), *(spec.dtype for spec in manifest.cacheables)):
        if not _is_dtype(dtype):
            yield f"names the dtype {dtype!r}, which does not exist"
    yield from _file_faults(manifest)
    for spec in (*manifest.edits.values(), *manifest.stacked_graphs):
        yield from _graph_faults(manifest, spec)
    if manifest.moments is not None:
        yield from _moments_faults(manifest, manifest.moments)


def _file_faults(manifest: Manifest) -> Iterator[str]:
    specs = (*manifest.edits.values(), *manifest.stacked_graphs)
    graphs = [spec.file for spec in specs]
    preps = [spec.prep_file for spec in specs]
    wanted = [manifest.base_file, manifest.weights_file, *graphs, *filter(None, preps)]
    yield from (f"lacks size and hash of {name}" for name in wanted if name not in manifest.files)
    if len(set(graphs) | {manifest.base_file}) != len(graphs) + 1:
        yield "uses one file as two graphs"


def _graph_faults(manifest: Manifest, spec: EditGraphSpec) -> Iterator[str]:
    known = {item.id for item in manifest.cacheables}
    lacking = [item for item in (*spec.cached, *spec.prep_cached, *spec.updates) if item not in known]
    yield from (f"names the cacheable {item!r}, which it does not describe" for item in lacking)
    grids = {grid.id: grid for grid in manifest.grids}
    missing = [item for item in (*spec.grids, *spec.blocks, *spec.owners) if item not in grids]
    yield from (f"names the grid {item!r}, which it does not describe" for item in missing)
    wrong = [item for item in spec.blocks if item in grids and grids[item].blocks is None]
    yield from (f"names the blocks {item!r}, which are a grid of another kind" for item in wrong)
    described = {item.id for item in manifest.neighbourhoods}
    absent = [item for item in spec.neighbourhoods if item not in described]
    yield from (f"names the neighbourhood {item!r}, which it does not describe" for item in absent)


def _moments_faults(manifest: Manifest, spec: MomentsSpec) -> Iterator[str]:
    sizes = {len(shift) for shift in spec.shifts}
    if len(sizes) != 1 or any(len(own) != len(spec.shifts) for own in spec.errors.values()):
        yield "has calibrated edits without a shift or an error"
    if set(spec.errors) != set(manifest.edits) or not set(spec.conditions) <= {one.name for one in manifest.inputs}:
        yield "has calibrated modes or conditions that it does not describe"
    if any(error < 0 for own in spec.errors.values() for error in own):
        yield "has calibrated errors below zero"


def _is_dtype(name: str) -> bool:
    try:
        np.dtype(name)
    except TypeError:
        return False
    return True
