"""Edits of many terrains under every policy, against full recomputations."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from retouch.bundle import Bundle
from retouch.region import POLICIES, Region, RegionPolicy
from retouch.session import MOMENTS, EditSession, Moments, Run
from retouch.validation.psnr import Psnr, measure_psnr
from retouch.validation.terrain import NATIVE_SIZE, draw_noise, terrain_feeds

Kind = Literal["pasted", "redrawn"]
Array = NDArray[np.float32]
Feeds = dict[str, Array]

_OUTPUT = "denoised"
_PEAK = 2.0
_SIGMA_NEW = 80.0
_DIFFICULTY = 50


@dataclass(frozen=True)
class Study:
    """What is edited: every terrain at every noise level, every patch by every kind of edit, policy and mode.

    Attributes:
        terrains: how many terrains are made and edited; a patch is pasted from the next one.
        sigmas: noise levels.
        sizes: edges of the centred square patches.
        policies: region policies by name.
    """

    terrains: int = 12
    sigmas: tuple[float, ...] = (0.139, 0.4, 1.15)
    sizes: tuple[int, ...] = (16, 32)
    policies: Mapping[str, RegionPolicy] = field(default_factory=lambda: {**POLICIES, "dilation 8": RegionPolicy(8)})

    def __len__(self) -> int:
        """The number of samples."""
        edits = self.terrains * len(self.sigmas) * len(self.sizes) * len(get_args(Kind))
        return edits * len(self.policies) * len(MOMENTS)


@dataclass(frozen=True)
class Sample:
    """One edit.

    Attributes:
        kind: ``pasted`` replaces the patch by another terrain's, ``redrawn`` draws only its noise anew.
        sigma: noise level.
        size: edge of the centred square patch.
        shift: how far the mean height of the patch moves, in the model's units (all heights span 2).
        policy: name of the region policy.
        group_norm: the moments that GroupNorm used.
        psnr: against a full recomputation.
        kept: PSNR inside when nothing is recomputed at all, which says how large the change is.
    """

    kind: Kind
    sigma: float
    size: int
    shift: float
    policy: str
    group_norm: Moments
    psnr: Psnr
    kept: float


@dataclass(frozen=True)
class _Case:
    kind: Kind
    sigma: float
    size: int
    shift: float
    region: Region
    feeds: Feeds


def run_study(bundle: Bundle | Path, study: Study, *, threads: int | None = None) -> Iterator[Sample]:
    """The samples, one at a time."""
    with EditSession(bundle, threads=threads, group_norm="corrected") as session:
        sources = [_terrain(session, seed) for seed in range(1, study.terrains + 1)]
        for number, sigma in itertools.product(range(study.terrains), study.sigmas):
            source, other = sources[number], sources[(number + 1) % study.terrains]
            feeds = _feeds(source, sigma, seed=100 + number)
            run = session.base(feeds)
            drawn_from: dict[Kind, Array] = {"pasted": other, "redrawn": source}
            for size, (kind, drawn) in itertools.product(study.sizes, drawn_from.items()):
                new = _feeds(drawn, sigma, seed=200 + number)["noisy"]
                region = _centred_square(size)
                edited = {**feeds, "noisy": np.where(region.mask, new, feeds["noisy"])}
                shift = float((drawn - source)[..., region.mask].mean())
                case = _Case(kind, sigma, size, shift, region, edited)
                yield from _samples(session, run, case, study.policies)
            session.drop(run)


def _terrain(session: EditSession, seed: int) -> Array:
    return _full(session, terrain_feeds(draw_noise(seed), sigma=_SIGMA_NEW, difficulty=_DIFFICULTY))


def _feeds(source: Array, sigma: float, seed: int) -> Feeds:
    return terrain_feeds(draw_noise(seed), sigma=sigma, difficulty=_DIFFICULTY, source=source)


def _full(session: EditSession, feeds: Feeds) -> Array:
    output: Array = session.base(feeds, record=False).outputs[_OUTPUT]
    return output


def _samples(session: EditSession, run: Run, case: _Case, policies: Mapping[str, RegionPolicy]) -> Iterator[Sample]:
    expected = _full(session, case.feeds)
    kept = measure_psnr(run.outputs[_OUTPUT], expected, case.region, peak=_PEAK).inside
    change = {"noisy": case.feeds["noisy"]}
    for (name, policy), mode in itertools.product(policies.items(), MOMENTS):
        result = session.edit(run, change, region=case.region, policy=policy, group_norm=mode, fallback=False)
        psnr = measure_psnr(result.outputs[_OUTPUT], expected, case.region, peak=_PEAK)
        yield Sample(case.kind, case.sigma, case.size, case.shift, name, mode, psnr, kept)


def _centred_square(size: int) -> Region:
    start = (NATIVE_SIZE - size) // 2
    return Region.from_boxes([(start, start, start + size, start + size)], shape=(NATIVE_SIZE, NATIVE_SIZE))
