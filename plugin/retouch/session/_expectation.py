"""Which GroupNorm moments an edit takes, and what error to expect of it."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import assert_never

import numpy as np

from retouch.bundle import Manifest, MomentsSpec
from retouch.engines import Value
from retouch.region import DEFAULT_POLICY, POLICIES, RegionPolicy
from retouch.session._change import Change
from retouch.session._lru import Lru
from retouch.session._mode import MOMENTS, GroupNormMode, Moments, edit_spec, read_ids
from retouch.session._moment_foresight import MomentForesight
from retouch.session._shift import Shift, Statistics, channels_first, measure_shift, statistics

_KEPT_STATISTICS = 16
_NO_NORM = "the model has no GroupNorm"
_NOT_CALIBRATED = "the bundle's GroupNorm modes were not calibrated"
_UNMOVED = "the editable input does not change"


@dataclass(frozen=True)
class Expectation:
    """Which GroupNorm moments an edit takes, and what error to expect of it.

    Attributes:
        moments: the moments.
        reason: why these.
        error: the error to expect as far as it is known before the edit runs; see ``Report.expected_error``.
        basis: what the error is foreseen from, or why there is none.
        shift: what the edit moves; ``None`` where it has other conditions, or nothing moves.
        coordinates: the shift and the conditions as errors are foreseen from them.
    """

    moments: Moments
    reason: str
    error: float | None
    basis: str
    shift: Shift | None = None
    coordinates: tuple[float, ...] = ()


class Expectations:
    """What a bundle's calibration makes of edits; it is read when the first edit asks."""

    def __init__(self, manifest: Manifest) -> None:
        self._manifest = manifest
        self._lock = threading.Lock()
        self._foresight: MomentForesight | None = None
        self._statistics: Lru[str, Statistics] = Lru(_KEPT_STATISTICS)

    def of(
        self,
        run: str,
        kept: Mapping[str, Value],
        feeds: Mapping[str, Value],
        change: Change | None,
        policy: RegionPolicy,
        mode: GroupNormMode,
        states: AbstractSet[str],
    ) -> Expectation:
        """What to take and to expect.

        Args:
            run: the base run's id.
            kept: its feeds.
            feeds: the edit's; one that did not change is the very value that the run has.
            change: where they change the editable input.
            policy: the policy of the edit's region.
            mode: what was asked for.
            states: ids of the states that the run keeps.
        """
        # What an edit of other conditions moves says nothing of its error, and steps of a generation are short.
        others = self._other_conditions(kept, feeds)
        shift = None if others or change is None else self._shift(run, kept, feeds, change)
        reason = self._unforeseeable(others)
        if reason is not None or shift is None:
            moments, why = self._unforeseen(mode, reason or _UNMOVED, [feeds[name] for name in others], states)
            return Expectation(moments, why, None, reason or _UNMOVED, shift)
        coordinates = shift.features(condition_values(self._calibration.conditions, feeds))
        foreseen = self._known().before(coordinates)
        moments, why = self._chosen(mode, foreseen, states)
        if policy != POLICIES[DEFAULT_POLICY]:
            return Expectation(moments, why, None, f"calibrated for the policy {DEFAULT_POLICY} only", shift)
        count = len(self._calibration.shifts)
        return Expectation(moments, why, foreseen[moments], f"{count} measured edits; {shift}", shift, coordinates)

    def after(self, expectation: Expectation, spill: Callable[[], float]) -> float | None:
        """The error to expect of an edit that ran.

        Args:
            expectation: what was expected before.
            spill: how much of the change lies outside of the region, asked for if that tells something.
        """
        if expectation.error is None or not self._calibration.spills:
            return expectation.error
        return self._known().after(expectation.moments, expectation.coordinates, spill())

    def preferred(self, mode: GroupNormMode) -> Moments:
        """The moments that edits take in that mode, for ``auto`` those that most calibrated edits would."""
        match mode:
            case "cached" | "corrected":
                return mode
            case "auto":
                spec = self._manifest.moments
                if spec is None:
                    return "cached"
                better = np.asarray(spec.errors["corrected"]) < np.asarray(spec.errors["cached"])
                return "corrected" if better.mean() > 0.5 else "cached"
            case _:
                assert_never(mode)

    def _other_conditions(self, kept: Mapping[str, Value], feeds: Mapping[str, Value]) -> list[str]:
        """The feeds beside the editable one that are not the run's."""
        editable = self._manifest.editable.input
        return [name for name, value in feeds.items() if value is not kept[name] and name != editable]

    def _unforeseeable(self, others: Sequence[str]) -> str | None:
        if "corrected" not in self._manifest.edits:
            return _NO_NORM
        if self._manifest.moments is None:
            return _NOT_CALIBRATED
        return f"no edit with another {', '.join(map(repr, others))} was calibrated" if others else None

    def _unforeseen(
        self, mode: GroupNormMode, reason: str, others: Sequence[Value], states: AbstractSet[str]
    ) -> tuple[Moments, str]:
        """What to take where no error is foreseen: another prompt moves statistics, another number hardly does."""
        if mode != "auto":
            return mode, "as asked"
        if any(math.prod(value.shape) > 1 for value in others) and self._serves("corrected", states):
            return "corrected", f"auto: {reason}, and such a condition moves statistics"
        return "cached", f"auto: {reason}"

    def _serves(self, moments: Moments, states: AbstractSet[str]) -> bool:
        """Whether there is an edit graph for those moments, and a run with those states keeps what it reads."""
        return moments in self._manifest.edits and read_ids(edit_spec(self._manifest, moments)[1]) <= states

    def _chosen(
        self, mode: GroupNormMode, foreseen: Mapping[str, float], states: AbstractSet[str]
    ) -> tuple[Moments, str]:
        if mode != "auto":
            return mode, "as asked"
        best = min(MOMENTS, key=lambda moments: foreseen[moments])
        if not self._serves(best, states):
            return "cached", f"auto: the run lacks states that {best!r} reads"
        errors = ", ".join(f"{foreseen[moments]:.2g} {moments}" for moments in MOMENTS)
        return best, f"auto: expected errors {errors}"

    def _shift(self, run: str, kept: Mapping[str, Value], feeds: Mapping[str, Value], change: Change) -> Shift | None:
        if "corrected" not in self._manifest.edits:
            return None
        editable = self._manifest.editable
        base, edited = (channels_first(values[editable.input].numpy(), editable.axes) for values in (kept, feeds))
        known = self._statistics.get(run, lambda: statistics(base))
        return measure_shift(base, edited, change.computed, known)

    def _known(self) -> MomentForesight:
        with self._lock:
            if self._foresight is None:
                self._foresight = MomentForesight(self._calibration)
        return self._foresight

    @property
    def _calibration(self) -> MomentsSpec:
        assert self._manifest.moments is not None, "only calibrated bundles foresee"
        return self._manifest.moments


def condition_values(names: Sequence[str], feeds: Mapping[str, Value]) -> tuple[float, ...]:
    """The conditions that are single numbers."""
    return tuple(float(feeds[name].numpy().reshape(())) for name in names)
