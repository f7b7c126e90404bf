"""What was measured of a bundle after its export."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class BreakEven:
    """Measured on one engine: the FLOP share from which the edit graph is not faster than the full model.

    ``points`` holds the measured (FLOP share, edit time / full time) pairs.
    """

    engine: str
    threads: int
    flop_ratio: float
    points: tuple[tuple[float, float], ...] = ()


@dataclass(frozen=True)
class MomentsSpec:
    """How far edits of this bundle came from a full recomputation under each GroupNorm mode, measured edit by edit.

    What an edit's shift makes of it is foreseen from these (``retouch.session``); every tuple has one entry per edit.

    Attributes:
        conditions: names of the inputs that are single numbers; their values belong to the shifts.
        shifts: per edit, what it moved and under which conditions.
        errors: per mode, mean error inside the region over the mean change that a full recomputation makes there.
        correlation: rank correlation of foreseen and measured errors of the chosen mode, edits foreseen from others.
        spills: per mode, how much of what the edit changed lay outside of its region (``retouch.session``); none of
            bundles that were calibrated before this was measured.
    """

    conditions: tuple[str, ...]
    shifts: tuple[tuple[float, ...], ...]
    errors: Mapping[str, tuple[float, ...]]
    correlation: float
    spills: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
