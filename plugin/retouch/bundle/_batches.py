"""Bundles for another batch than they were exported for, where engines were built that serve it."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping

import numpy as np

from retouch.bundle._bundle import Bundle
from retouch.bundle._engines import BATCH, OPEN_BATCH, EngineSpec
from retouch.bundle._manifest import CacheableSpec, EditGraphSpec, Manifest, StackSpec, TensorSpec
from retouch.errors import BundleError

Axes = Mapping[str, tuple[int, ...]]


def at_batch(bundle: Bundle, batch: int) -> Bundle:
    """The bundle as if it had been exported for that batch; its engines serve several, its graphs do not.

    Args:
        bundle: a bundle with engines that were built for a range of batches (``retouch build --profile batch=2..8``).
        batch: the batch.

    Raises:
        BundleError: no engines were built that serve it.
    """
    opened = {name: spec for name, spec in bundle.manifest.engines.items() if OPEN_BATCH in spec.traits}
    ranges = {spec.profiles[0].dims[BATCH] for spec in opened.values() if spec.batch_axes}
    engines = {name: spec for name, spec in opened.items() if _serves(spec, batch)}
    if not any(spec.batch_axes for spec in engines.values()):
        built = ", ".join(f"{least} to {most}" for least, _, most in sorted(ranges)) or "none"
        raise BundleError(
            f"Expected engines for batches of {batch} in {bundle.path}, got engines for ranges of batches: {built}. "
            f"Build them with `retouch build {bundle.path} --profile batch=LEAST..MOST --other-batch BUNDLE`, or "
            "export the model for that batch."
        )
    axes: dict[str, tuple[int, ...]] = {}
    for spec in engines.values():
        axes.update(spec.batch_axes)
    return Bundle(bundle.path, _resized(bundle.manifest.replace(engines=engines), axes, batch), batch)


def _serves(spec: EngineSpec, batch: int) -> bool:
    """Whether an engine takes a batch; all its profiles have the same range, or none if nothing depends on it."""
    if not spec.batch_axes:
        return True
    least, _, most = spec.profiles[0].dims[BATCH]
    return least <= batch <= most


def _resized(manifest: Manifest, axes: Axes, batch: int) -> Manifest:
    def shaped(name: str, shape: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(batch if axis in axes.get(name, ()) else size for axis, size in enumerate(shape))

    def tensor(spec: TensorSpec) -> TensorSpec:
        return dataclasses.replace(spec, shape=shaped(spec.name, spec.shape))

    def cacheable(spec: CacheableSpec) -> CacheableSpec:
        shape = shaped(f"cacheable.{spec.id}", spec.shape)
        return dataclasses.replace(spec, shape=shape, bytes=math.prod(shape) * np.dtype(spec.dtype).itemsize)

    def edit(spec: EditGraphSpec) -> EditGraphSpec:
        return dataclasses.replace(spec, prepared=tuple(map(tensor, spec.prepared)))

    def stack(spec: StackSpec) -> StackSpec:
        return spec if spec.graph is None else dataclasses.replace(spec, graph=edit(spec.graph))

    return manifest.replace(
        inputs=tuple(map(tensor, manifest.inputs)),
        outputs=tuple(dataclasses.replace(spec, tensor=tensor(spec.tensor)) for spec in manifest.outputs),
        cacheables=tuple(map(cacheable, manifest.cacheables)),
        edits={mode: edit(spec) for mode, spec in manifest.edits.items()},
        stacked={mode: stack(spec) for mode, spec in manifest.stacked.items()},
    )
