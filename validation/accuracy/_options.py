"""What to validate with."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from retouch.region import RegionPolicy
from retouch.session import Moments, WeightStorage


@dataclass(frozen=True)
class ValidationOptions:
    """What to validate with.

    Attributes:
        areas: shares of the editable positions to edit.
        feeds: a .npz file with feeds of the base run by input name, and of the edits as ``edit.<input>``; what it
            leaves out is made up.
        original: the exported model; ``None`` takes the bundle's own base graph for it.
        policy: how far around regions edits compute.
        group_norm: how GroupNorm sees edits.
        drift: number of edits in a row.
        min_psnr: smallest PSNR inside a region, in dB; ``None`` asks for none.
        peak: the range of the outputs, for PSNR; ``None`` takes what the base run spans.
        threads: threads per run; ``None`` leaves the choice to the engine.
        weights: how edits keep weights; the oracle has them as they are, so its error says what that errs.
    """

    areas: tuple[float, ...] = (0.01, 0.05, 0.25)
    feeds: Path | None = None
    original: Path | None = None
    policy: str | RegionPolicy = "balanced"
    group_norm: Moments = "cached"
    drift: int = 10
    min_psnr: float | None = None
    peak: float | None = None
    threads: int | None = None
    weights: WeightStorage = WeightStorage.FLOAT32
