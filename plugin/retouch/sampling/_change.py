"""What an edit of a trajectory changes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retouch.errors import SamplingError
from retouch.region import Region
from retouch.sampling._conditions import Conditions
from retouch.sampling._denoiser import Guidance
from retouch.sampling._trajectory import Trajectory

Latents = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Change:
    """What an edit changes.

    Attributes:
        region: where, on the grid of the latents; nothing outside its mask changes, at any step.
        conditions: what is asked for inside; ``None`` means what the base was asked for.
        seed: seed of other noise inside; ``None`` means the noise of the base.
    """

    region: Region
    conditions: Conditions | None = field(default=None, repr=False)
    seed: int | None = None


class Branch:
    """The loop of one change: its scheduler, and its latents."""

    def __init__(self, base: Trajectory, change: Change) -> None:
        """Begins before the first step.

        Raises:
            SamplingError: the region is not on the latents' grid, or the conditions take other calls than the base's.
        """
        self.change = change
        self.conditions = base.conditions if change.conditions is None else change.conditions
        self.mask = base.denoiser.mask(change.region)
        self.latents = base.before(0)
        self.stepper = base.schedule.start(base.seed if change.seed is None else change.seed)
        self._base = base
        _check_guidance(base, self.conditions)

    def seek(self, start: int) -> None:
        """Come to the step of that index by replaying the base, and take the latents before it.

        Other noise than the base's is mixed into the base's finished latents, as image-to-image does (SDEdit, Meng et
        al., 2022); before the first step it is all there is.
        """
        drawn = self.stepper.noise(self._base.denoiser.latents_shape)
        for step in self._base.steps[:start]:
            self.stepper.step(step.output, step.index, step.latents)
        inside = self._base.before(start)
        if self.change.seed is not None:
            inside = self.stepper.noised(self._base.latents, start) if start else drawn
        self.latents = self.merged(inside, self._base.before(start))

    def advance(self, prediction: Latents, index: int) -> Latents:
        """Make a step; returns the prediction that it was made with, the base's outside the region."""
        output = self.merged(prediction, self._base.steps[index].output)
        after = self.stepper.step(output, index, self.latents)
        self.latents = self.merged(after, self._base.before(index + 1))
        return output

    def merged(self, inside: Latents, outside: Latents) -> Latents:
        """One inside the region, the other outside (read-only)."""
        both = np.where(self.mask, inside, outside)
        both.setflags(write=False)
        return both


def _check_guidance(base: Trajectory, conditions: Conditions) -> None:
    calls = base.denoiser.guidance is Guidance.CALLS
    if calls and (conditions.negative is None) != (base.conditions.negative is None):
        have, want = ("without", "with") if base.conditions.negative is None else ("with", "without")
        raise SamplingError(
            f"Expected conditions {have} a negative side, like the base's, got some {want} one: the base has no states "
            f"for it. Give conditions {have} one, or generate the base {want} one."
        )
