"""The edits that a bundle is validated with."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from retouch.bundle import Manifest
from retouch.calibrate import block_region
from retouch.region import Region
from retouch.session import Moments
from retouch.validation.accuracy._feeds import Feeds, FeedSource, leaves_tokens
from retouch.validation.accuracy._options import ValidationOptions

Kind = Literal["area", "shape", "conditions", "no change", "all rows", "drift"]
Mask = NDArray[np.bool_]

EXACT: frozenset[Kind] = frozenset({"no change", "all rows"})
"""What has to give the full model's output up to rounding."""

_SEED = 5
_DRIFT_SEED = 100


@dataclass(frozen=True, eq=False)
class Case:
    """One edit.

    Attributes:
        name: what to call it.
        kind: what it is for.
        base: feeds of the run that it is based on.
        edit: feeds of the edit.
        region: the positions to compute.
        judged: the positions that count as inside; those of the earlier edits in a row too.
    """

    name: str
    kind: Kind
    base: Feeds = field(repr=False)
    edit: Feeds = field(repr=False)
    region: Region
    judged: Mask = field(repr=False)


@dataclass(frozen=True, eq=False)
class Suite:
    """Edits that are run one after the other by the same runners.

    Attributes:
        name: what to call it, in file names too.
        group_norm: how GroupNorm sees the edits.
        chained: whether every edit is based on the one before.
        cases: the edits.
    """

    name: str
    group_norm: Moments
    chained: bool
    cases: tuple[Case, ...]


def make_suites(manifest: Manifest, source: FeedSource, options: ValidationOptions) -> tuple[Suite, ...]:
    """Regions of several areas and shapes, all rows, and edits in a row.

    All rows give the full model's output only if GroupNorm has the moments of all rows: that case has corrected ones.
    Where edits leave text tokens as they were, they give it under no mode, and there is no such case.
    """
    mode, exact = options.group_norm, _exact_mode(manifest)
    if mode not in manifest.edits:
        mode = exact
    regions = tuple(_regions(manifest, source, options))
    everything = _everything(manifest, source, options)
    suites = [Suite("regions", mode, chained=False, cases=(*regions, *(everything if mode == exact else ())))]
    if everything and mode != exact:
        suites.append(Suite("all_rows", exact, chained=False, cases=everything))
    if options.drift:
        suites.append(Suite("drift", mode, chained=True, cases=tuple(_drift(manifest, source, options))))
    return tuple(suites)


def _everything(manifest: Manifest, source: FeedSource, options: ValidationOptions) -> tuple[Case, ...]:
    if leaves_tokens(manifest):
        return ()
    return (_case(manifest, source, "all rows", "all rows", _full(manifest, options)),)


def _exact_mode(manifest: Manifest) -> Moments:
    return "corrected" if "corrected" in manifest.edits else "cached"


def _dims(manifest: Manifest) -> tuple[int, ...]:
    return manifest.grid(manifest.editable.grid).dims


def _full(manifest: Manifest, options: ValidationOptions) -> Region:
    return Region.full(_dims(manifest), options.policy)


def _regions(manifest: Manifest, source: FeedSource, options: ValidationOptions) -> Iterator[Case]:
    dims, policy = _dims(manifest), options.policy
    middle = sorted(options.areas)[len(options.areas) // 2]
    for area in options.areas:
        yield _case(manifest, source, f"block {100 * area:.3g} %", "area", block_region(dims, area, policy))
    for name, mask in _shapes(dims, middle):
        yield _case(manifest, source, name, "shape", Region.from_mask(mask, policy))
    block = block_region(dims, middle, policy)
    yield Case("no change", "no change", source.base, source.base, block, block.mask)
    if source.conditions:
        edit = {**source.base, **source.conditions}
        yield Case("other conditions", "conditions", source.base, edit, block, block.mask)


def _shapes(dims: Sequence[int], area: float) -> Iterator[tuple[str, Mask]]:
    generator = np.random.default_rng(_SEED)
    corner = np.zeros(dims, np.bool_)
    corner[tuple(slice(0, max(1, round(dim * area ** (1 / len(dims))))) for dim in dims)] = True
    yield "first corner", corner
    yield "last corner", corner[tuple(slice(None, None, -1) for _ in dims)].copy()
    scattered = np.zeros(dims, np.bool_)
    count = max(1, round(area * scattered.size))
    scattered.reshape(-1)[generator.permutation(scattered.size)[:count]] = True
    yield "scattered", scattered
    single = np.zeros(dims, np.bool_)
    single[tuple(dim // 3 for dim in dims)] = True
    yield "one position", single
    if len(dims) == 2:
        yield "ring", _ring(dims, area)


def _ring(dims: Sequence[int], area: float) -> Mask:
    """A hollow disc: nothing in it is straight, and it has an inside that is kept."""
    y, x = np.ogrid[: dims[0], : dims[1]]
    radius = np.hypot(y - (dims[0] - 1) / 2, x - (dims[1] - 1) / 2)
    outer = max(2.0, min(dims) / 3)
    inner = np.sqrt(max(0.0, outer**2 - max(8.0, area * dims[0] * dims[1]) / np.pi))
    ring: Mask = (radius <= outer) & (radius >= inner)
    return ring


def _drift(manifest: Manifest, source: FeedSource, options: ValidationOptions) -> Iterator[Case]:
    dims, base = _dims(manifest), source.base
    middle = sorted(options.areas)[len(options.areas) // 2]
    sizes = [max(1, round(dim * middle ** (1 / len(dims)))) for dim in dims]
    generator = np.random.default_rng(_SEED)
    judged = np.zeros(dims, np.bool_)
    for step in range(options.drift):
        starts = [int(generator.integers(0, dim - size + 1)) for dim, size in zip(dims, sizes, strict=True)]
        mask = np.zeros(dims, np.bool_)
        mask[tuple(slice(start, start + size) for start, size in zip(starts, sizes, strict=True))] = True
        judged = judged | mask
        edit = _pasted(manifest, base, source.content(_DRIFT_SEED + step), mask)
        region = Region.from_mask(mask, options.policy)
        yield Case(f"{step + 1} in a row", "drift", base, edit, region, judged)
        base = edit


def _case(manifest: Manifest, source: FeedSource, name: str, kind: Kind, region: Region) -> Case:
    edit = _pasted(manifest, source.base, source.content(1), region.mask)
    return Case(name, kind, source.base, edit, region, region.mask)


def _pasted(manifest: Manifest, base: Feeds, content: NDArray[Any], mask: Mask) -> Feeds:
    """The feeds with another content where the mask is true."""
    name, axes = manifest.editable.input, manifest.editable.axes
    changed = base[name].copy()
    front = range(len(axes))
    np.moveaxis(changed, axes, front)[mask] = np.moveaxis(content, axes, front)[mask]
    return {**base, name: changed}
