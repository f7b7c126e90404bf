"""Regions of the samples of a batch: computed together, and kept apart in what goes in and what comes out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import NDArray

from retouch.bundle import EditableSpec, Manifest
from retouch.engines import Engine, Value
from retouch.errors import RegionError
from retouch.region import Region, RegionPolicy
from retouch.session._change import Change
from retouch.session._regions import ActiveRegion, Regions, as_region
from retouch.session._request import RegionLike, RegionsLike
from retouch.session._run import OUTPUTS
from retouch.session._runtime import Runtime


@dataclass(frozen=True, eq=False)
class Samples:
    """The samples of an edit, each with the rows in which it may change; ``None`` for one that stays as it is."""

    active: tuple[ActiveRegion | None, ...]

    def masks(self, grid: str, *, flat: bool = False) -> NDArray[np.bool_]:
        """Per sample the rows of a grid in which it may change: [B, *dims], or [B, rows]."""
        known = next(region for region in self.active if region is not None)
        empty = np.zeros(known.active.dims[grid], np.bool_)
        masks = np.stack([empty if region is None else region.active.mask(grid) for region in self.active])
        return masks.reshape(len(masks), -1) if flat else masks


def is_per_sample(given: RegionsLike) -> TypeGuard[Sequence[RegionLike | None]]:
    """Whether regions are given by sample; a mask written as lists of truth values is none of them."""
    return isinstance(given, list | tuple) and any(one is None or isinstance(one, Region | np.ndarray) for one in given)


def samples_of(
    regions: Regions,
    manifest: Manifest,
    given: Sequence[RegionLike | None],
    policy: str | RegionPolicy | None,
) -> tuple[ActiveRegion, Samples]:
    """What an edit of several samples computes, which is the union of their regions, and the samples.

    Raises:
        RegionError: there are not as many regions as samples, or they differ in policy.
    """
    count = _sample_count(manifest)
    if len(given) != count:
        batch = f"a batch of {count}" if count > 1 else "single samples"
        raise RegionError(
            f"Expected one Region, or one for each sample of a batch; got {len(given)}, and the bundle was exported "
            f"for {batch}. Export it with --fix batch={len(given)}; or, for edits of one base run, pass edit_many "
            "an EditRequest per region."
        )
    parts = [None if one is None else as_region(one, policy) for one in given]
    found = [part for part in parts if part is not None]
    if len({part.policy for part in found}) != 1 or len({part.mask.shape for part in found}) != 1:
        raise RegionError(
            "Expected regions of one shape and one policy for the samples of a batch, at least one of them not None, "
            f"got {[None if part is None else (part.mask.shape, part.policy) for part in parts]}. Pass policy=..."
        )
    union = Region(np.logical_or.reduce([part.mask for part in found]), found[0].policy)
    return regions.active(union), Samples(tuple(None if part is None else regions.active(part) for part in parts))


def _sample_count(manifest: Manifest) -> int:
    editable = manifest.editable
    shape = next(spec.shape for spec in manifest.inputs if spec.name == editable.input)
    return 1 if 0 in editable.axes else shape[0]


def own_feeds(
    engine: Engine,
    editable: EditableSpec,
    samples: Samples,
    kept: Mapping[str, Value],
    changed: Mapping[str, Value],
) -> dict[str, Value]:
    """The feeds that change, the editable one in each sample's own rows only."""
    if editable.input not in changed:
        return dict(changed)
    before, after = kept[editable.input].numpy(), changed[editable.input].numpy()
    own = _placed(samples.masks(editable.grid), editable.axes, after.ndim)
    return {**changed, editable.input: engine.value(np.where(own, after, before))}


def own_change(
    editable: EditableSpec, samples: Samples, kept: Mapping[str, Value], changed: Mapping[str, Value]
) -> Change | None:
    """What changes from a run's feeds to those that were given, counted in every sample."""
    if editable.input not in changed:
        return None
    before, after = kept[editable.input].numpy(), changed[editable.input].numpy()
    moved = np.moveaxis(after != before, (0, *editable.axes), range(1 + len(editable.axes)))
    moved = moved.reshape(*moved.shape[: 1 + len(editable.axes)], -1).any(-1)
    own = samples.masks(editable.grid)
    return Change((moved & own).any(0), int(np.count_nonzero(moved & ~own))) if moved.any() else None


def own_outputs(
    runtime: Runtime, run: str, samples: Samples | None, outputs: Mapping[str, Value]
) -> Mapping[str, Value]:
    """What was computed, with every sample the base run's outside its own rows."""
    if samples is None:
        return outputs
    base, merged = runtime.store.get(run, runtime.bundle.fingerprint, OUTPUTS), dict(outputs)
    for output in runtime.manifest.outputs:
        name, shape = output.tensor.name, output.tensor.shape
        if output.grid is None or 0 in output.axes or shape[0] != len(samples.active):
            continue
        own = _placed(samples.masks(output.grid, flat=len(output.axes) == 1), output.axes, len(shape))
        merged[name] = runtime.engine.value(np.where(own, merged[name].numpy(), base[name].numpy()))
    return merged


def _placed(masks: NDArray[np.bool_], axes: Sequence[int], rank: int) -> NDArray[Any]:
    """Masks [B, *dims] broadcast to a tensor of that rank, with samples on its first axis and positions on those."""
    wide = masks.reshape(*masks.shape, *[1] * (rank - masks.ndim))
    return np.moveaxis(wide, range(1, 1 + len(axes)), axes)
