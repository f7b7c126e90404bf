"""Times edits of centred squares on our kernels and on stock ones, and takes their errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retouch.bench import measure
from retouch.bundle import Bundle
from retouch.calibrate import block_region, sample_feeds
from retouch.engines.ort import OrtEngine
from retouch.region import Region, RegionPolicy
from retouch.session import EditSession

__all__ = ["POLICIES", "SquareCost", "measure_squares"]

POLICIES: Mapping[str, RegionPolicy] = MappingProxyType(
    {
        "5 pixels": RegionPolicy(dilation=5),
        "SIGE": RegionPolicy(dilation=5, grid_dilation=1, dense_rows=1024),
    }
)
"""Five pixels around the square and every cell that they touch; and the active set of SIGE (arXiv:2211.02048): one more
position at every coarser level, and levels of up to 32x32 as a whole."""

_STOCK = ("CPUExecutionProvider",)


@dataclass(frozen=True)
class SquareCost:
    """One edit.

    Attributes:
        policy: the name of its policy.
        area: the square's share of the positions.
        flop_ratio: its share of the full model's FLOPs.
        ratio: its CPU time over the full model's on stock kernels.
        stock_ratio: the same of the edit on stock kernels.
        error: root of the mean squared difference from a full recompute inside the square, over that of the values.
    """

    policy: str
    area: float
    flop_ratio: float
    ratio: float
    stock_ratio: float
    error: float


def measure_squares(
    bundle: Bundle, original: Path, areas: Sequence[float], policies: Sequence[str], repeats: int
) -> list[SquareCost]:
    """One row per policy and area, on one thread; full runs and edits take turns.

    Args:
        bundle: the bundle.
        original: the model that was exported; ratios are to the faster of it and the bundle's full model.
        areas: shares of the positions.
        policies: names of policies.
        repeats: timed rounds per edit.
    """
    dims = bundle.manifest.grid(bundle.manifest.editable.grid).dims
    cases = [(policy, area) for policy in policies for area in areas]
    regions = {f"{policy} {area}": block_region(dims, area, POLICIES[policy]) for policy, area in cases}
    errors = _errors(bundle, list(regions.values()))
    ours, stock = (
        measure(
            bundle, (), threads=1, providers=who, original=original, regions=regions, fallback=False, repeats=repeats
        )
        for who in (None, _STOCK)
    )
    return [
        SquareCost(policy, area, own["flop_ratio"], own["ratio"], other["ratio"], error)
        for (policy, area), own, other, error in zip(cases, ours, stock, errors, strict=True)
    ]


def _errors(bundle: Bundle, regions: Sequence[Region]) -> list[float]:
    manifest, feeds, engine = bundle.manifest, sample_feeds(bundle.manifest), OrtEngine(threads=1)
    output, editable = manifest.outputs[0].tensor.name, manifest.editable.input
    noise, found = sample_feeds(manifest, seed=1)[editable], []
    full = engine.open(bundle.path / manifest.base_file, [output])
    with EditSession(bundle, threads=1) as session:
        run = session.base(feeds)
        for region in regions:
            changed = {**feeds, editable: np.where(region.mask, noise, feeds[editable])}
            got = session.edit(run, changed, region=region, fallback=False).outputs[output]
            wanted = full.run({name: engine.value(array) for name, array in changed.items()})[output].numpy()
            found.append(_relative(got, wanted, np.broadcast_to(region.mask, got.shape)))
    return found


def _relative(got: NDArray[Any], wanted: NDArray[Any], inside: NDArray[np.bool_]) -> float:
    return float(np.sqrt(np.mean((got[inside] - wanted[inside]) ** 2) / np.mean(wanted[inside] ** 2)))
