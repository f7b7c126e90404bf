"""Several edits through the stacked graph, for comparison with one run each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from retouch.bundle import EditGraphSpec, Manifest, OutputSpec
from retouch.export.verify.runner import Runner
from retouch.region import ActiveRows, active_part, attention_mask, owner_inputs, stacked_index_inputs, with_rows

__all__ = ["run_stacked"]

Feeds = Mapping[str, np.ndarray]


def run_stacked(
    path: Path,
    manifest: Manifest,
    mode: str,
    base: Feeds,
    edits: Sequence[tuple[Feeds, ActiveRows]],
) -> list[dict[str, np.ndarray]]:
    """The outputs of every edit, inactive rows the base run's.

    Args:
        path: the bundle's directory.
        manifest: its manifest, which has a stacked graph of that mode.
        mode: the GroupNorm mode.
        base: all outputs of the base run.
        edits: feeds and active rows of every edit; the conditions are the same.
    """
    spec = manifest.stacked[mode].graph
    assert spec is not None
    inputs = {**edits[0][0], **{f"cached.{name.removeprefix('cacheable.')}": value for name, value in base.items()}}
    if spec.prep_file is not None:
        inputs.update(Runner.open(path / spec.prep_file).run(inputs))
    actives = [active for _, active in edits]
    inputs.update(_indices(manifest, spec, actives))
    inputs.update(_editable(manifest, edits))
    names = [output.tensor.name for output in manifest.outputs]
    rows = Runner.open(path / spec.file).run(inputs, names)
    return [
        {o.tensor.name: _merged(o, base, rows, actives, number) for o in manifest.outputs}
        for number in range(len(edits))
    ]


def _indices(manifest: Manifest, spec: EditGraphSpec, edits: Sequence[ActiveRows]) -> dict[str, np.ndarray]:
    neighbourhoods = [item for item in manifest.neighbourhoods if item.id in spec.neighbourhoods]
    blocks = [grid for grid in manifest.grids if grid.id in spec.blocks]
    masks = {f"mask.{name}": attention_mask(edits, *name.split(".")) for name in spec.masks}
    owners = owner_inputs(edits, [grid for grid in manifest.grids if grid.id in spec.owners])
    return {**stacked_index_inputs(edits, neighbourhoods, manifest.grids, blocks), **masks, **owners}


def _editable(manifest: Manifest, edits: Sequence[tuple[Feeds, ActiveRows]]) -> dict[str, np.ndarray]:
    editable = manifest.editable
    tensor = next(item for item in manifest.inputs if item.name == editable.input)
    spec = OutputSpec(tensor, editable.grid, editable.axes)
    rows = np.concatenate([active_part(spec, feeds[editable.input], active) for feeds, active in edits])
    sizes = [size for axis, size in enumerate(tensor.shape) if axis not in editable.axes and size != 1]
    return {f"stacked.{editable.input}": rows.reshape(-1, *sizes)}


def _merged(output: OutputSpec, base: Feeds, rows: Feeds, edits: Sequence[ActiveRows], number: int) -> np.ndarray:
    assert output.grid is not None
    counts = [active.rows[output.grid].size for active in edits]
    part = np.split(rows[output.tensor.name], np.cumsum(counts)[:-1])[number]
    return with_rows(output, base[output.tensor.name], part, edits[number])
