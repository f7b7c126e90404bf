"""What edits of a calibrated bundle err under each GroupNorm mode, foreseen before and after they run."""

from __future__ import annotations

from collections.abc import Sequence

from retouch.bundle import MomentsSpec
from retouch.session._foresight import Foresight
from retouch.session._mode import Moments


class MomentForesight:
    """Foresees errors from those that were measured when a bundle was calibrated."""

    def __init__(self, spec: MomentsSpec) -> None:
        """Fits what is known before an edit runs; the rest when it is asked for first.

        Args:
            spec: the measured edits.
        """
        self._spec = spec
        self._before = Foresight(spec.shifts, spec.errors)
        self._after: dict[Moments, Foresight] = {}

    def before(self, coordinates: Sequence[float]) -> dict[str, float]:
        """Per mode the error to expect of an edit that did not run yet.

        Args:
            coordinates: what it moves, and its conditions; see ``Shift.features``.
        """
        return self._before.errors(coordinates)

    def after(self, moments: Moments, coordinates: Sequence[float], spill: float) -> float:
        """The error to expect of an edit that ran, which shows in the rows around its region too.

        Args:
            moments: the moments that it took.
            coordinates: what it moves, and its conditions.
            spill: how much of its change lies outside of the region; see ``spill``.
        """
        if not self._spec.spills:
            return self.before(coordinates)[moments]
        if moments not in self._after:
            pairs = zip(self._spec.shifts, self._spec.spills[moments], strict=True)
            points = [(*shift, own) for shift, own in pairs]
            self._after[moments] = Foresight(points, {moments: self._spec.errors[moments]})
        return self._after[moments].errors((*coordinates, spill))[moments]
