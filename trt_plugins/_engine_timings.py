"""Edits by the engines of a bundle, against the engine of its base graph."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retouch.bundle import Bundle, EditGraphSpec, TensorSpec, prepared_groups
from retouch.engines import Target, Value
from retouch.engines.tensorrt import TensorRtEngine
from retouch.region import ActiveRows, Region, RegionPolicy, index_inputs

__all__ = ["EngineTiming", "time_engines"]

_WARM_UP, _REPEATS = 3, 20
_EXACT = RegionPolicy(dilation=0)
_CONDITION = 0.5


@dataclass(frozen=True)
class EngineTiming:
    """An edit by an engine, on the clock of the host: from feeds in host memory to outputs on the card.

    Attributes:
        engine: what ran it.
        share: share of the positions in the region.
        rows: active rows of the editable grid.
        edit_milliseconds: the median time of an edit.
        base_milliseconds: the median time of a base run that keeps states.
        notes: what the engine says about the edit.
    """

    engine: str
    share: float
    rows: int
    edit_milliseconds: float
    base_milliseconds: float
    notes: tuple[str, ...]

    @property
    def speedup(self) -> float:
        """Base run over edit."""
        return self.base_milliseconds / self.edit_milliseconds


def time_engines(path: Path, target: Target, shares: tuple[float, ...]) -> Iterator[EngineTiming]:
    """Edits of blocks in the middle with ``cached`` moments, on random feeds; without regions that no profile takes.

    Raises:
        EngineMissingError: an engine, the library or a card is missing.
        EngineError: an engine does not run here.
        BundleError: the bundle is none, or damaged.
    """
    bundle = Bundle.open(path, check="size")
    manifest, engine = bundle.manifest, TensorRtEngine(bundle, target)
    spec = manifest.edits["cached"]
    own = tuple(output.tensor.name for output in manifest.outputs)
    read = dict.fromkeys((*spec.cached, *spec.prep_cached))
    feeds = {tensor.name: engine.value(_random(tensor)) for tensor in manifest.inputs}
    base = engine.open(path / manifest.base_file, (*own, *(f"cacheable.{item}" for item in read)))
    states = base.run(feeds)
    kept = {f"cached.{item}": states[f"cacheable.{item}"] for item in read}
    fixed = {**kept, **_prepared(engine, bundle, spec, {**feeds, **kept})}
    base_time = _milliseconds(lambda: base.run(feeds))
    program = engine.open(path / spec.file, own)
    editable = manifest.grid(manifest.editable.grid)
    for share in shares:
        active = Region.from_mask(_block(editable.dims, share), _EXACT).active(manifest.grids, editable)
        indices = {name: engine.value(array) for name, array in _indices(bundle, spec, active).items()}
        if program.refusal(indices) is not None:
            continue
        binding = program.bind({**fixed, **indices})
        edit_time = _milliseconds(lambda b=binding: b.run(feeds))  # type: ignore[misc]
        rows = int(active.counts()[editable.id])
        yield EngineTiming(engine.name, share, rows, edit_time, base_time, binding.notes)


def _prepared(
    engine: TensorRtEngine, bundle: Bundle, spec: EditGraphSpec, values: Mapping[str, Value]
) -> dict[str, Value]:
    """The prepared inputs of an edit graph."""
    if spec.prep_file is None:
        return {}
    file = bundle.path / spec.prep_file
    made: dict[str, Value] = {}
    for group in prepared_groups(file):
        made.update(engine.open(file, group.outputs).run(values))
    return made


def _indices(bundle: Bundle, spec: EditGraphSpec, active: ActiveRows) -> Mapping[str, NDArray[Any]]:
    manifest = bundle.manifest
    neighbourhoods = [item for item in manifest.neighbourhoods if item.id in spec.neighbourhoods]
    grids, blocks = ([grid for grid in manifest.grids if grid.id in ids] for ids in (spec.grids, spec.blocks))
    return index_inputs(active, neighbourhoods, grids, blocks)


def _random(tensor: TensorSpec) -> NDArray[Any]:
    dtype = np.dtype(tensor.dtype)
    if dtype.kind in "iub":
        return np.ones(tensor.shape, dtype)
    drawn = np.random.default_rng(0).standard_normal(tensor.shape)
    return np.asarray(drawn if len(tensor.shape) > 1 else np.full(tensor.shape, _CONDITION)).astype(dtype)


def _block(dims: tuple[int, ...], share: float) -> NDArray[np.bool_]:
    side = share ** (1 / len(dims))
    lengths = [max(1, round(size * side)) for size in dims]
    mask = np.zeros(dims, np.bool_)
    starts = [(size - length) // 2 for size, length in zip(dims, lengths, strict=True)]
    mask[tuple(slice(start, start + length) for start, length in zip(starts, lengths, strict=True))] = True
    return mask


def _milliseconds(run: Callable[[], object]) -> float:
    times = []
    for number in range(_WARM_UP + _REPEATS):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
        if number < _WARM_UP:
            times.clear()
    return float(np.median(times)) * 1e3
