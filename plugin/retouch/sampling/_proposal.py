"""Where other conditions would change a generation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retouch.errors import SamplingError
from retouch.region import Region, RegionPolicy
from retouch.sampling._conditions import Conditions
from retouch.sampling._denoiser import Denoiser
from retouch.sampling._generate import full_step
from retouch.sampling._trajectory import Trajectory

_CLIPPED = 99.0
"""Percentile of the differences that counts as the largest one, so that a few outliers do not hide the others."""


@dataclass(frozen=True, eq=False)
class Proposal:
    """Where other conditions change what the model predicts.

    Attributes:
        heat: per position of the latents' grid, how much, between 0 and 1 (float32).
        steps: indices of the steps that were compared.
    """

    heat: NDArray[np.float32] = field(repr=False)
    steps: tuple[int, ...]

    def region(self, threshold: float = 0.5, policy: str | RegionPolicy = "balanced") -> Region:
        """The positions whose heat is above the threshold.

        Raises:
            RegionError: there are none.
        """
        return Region.from_mask(self.heat > threshold, policy)


def propose_region(trajectory: Trajectory, conditions: Conditions, *, steps: Sequence[int] | None = None) -> Proposal:
    """Where the conditions would change a trajectory, found by comparing predictions over some of its steps.

    Every compared step costs a full evaluation. The difference is averaged over channels, scaled to its largest value
    per step, and averaged over steps (after DiffEdit, Couairon et al., 2022; that compares under random noise, this at
    the trajectory's own latents).

    Args:
        trajectory: the generation.
        conditions: the other conditions.
        steps: indices of the steps to compare; ``None`` means four from the first half, where layout is decided.

    Raises:
        SamplingError: a step is out of range, or the predictions do not differ.
    """
    chosen = _chosen(len(trajectory.steps), steps)
    stepper = trajectory.schedule.start(trajectory.seed)
    stepper.noise(trajectory.denoiser.latents_shape)
    heats = []
    for step in trajectory.steps[: max(chosen) + 1]:
        if step.index in chosen:
            other = full_step(trajectory.denoiser, stepper, conditions, step.index, step.latents, record=False)
            heats.append(_heat(trajectory.denoiser, other.output - step.output))
        stepper.step(step.output, step.index, step.latents)
    heat = np.asarray(np.mean(heats, axis=0), np.float32)
    if not heat.any():
        raise SamplingError("Expected conditions under which the model predicts something else, got the same output.")
    return Proposal(heat, chosen)


def _chosen(count: int, steps: Sequence[int] | None) -> tuple[int, ...]:
    if steps is None:
        return tuple(sorted({round(share * (count - 1)) for share in (0.2, 0.3, 0.4, 0.5)}))
    chosen = tuple(sorted(set(steps)))
    if not chosen or not 0 <= chosen[0] <= chosen[-1] < count:
        raise SamplingError(f"Expected indices of steps from 0 to {count - 1}, got {list(steps)}.")
    return chosen


def _heat(denoiser: Denoiser, difference: NDArray[Any]) -> NDArray[np.float32]:
    """The size of a difference per position, scaled to 0..1."""
    kept = denoiser.manifest.editable.axes
    others = tuple(axis for axis in range(difference.ndim) if axis not in kept)
    heat = np.abs(difference).mean(axis=others, dtype=np.float32)
    largest = np.percentile(heat, _CLIPPED) or heat.max()
    return np.asarray(np.clip(heat / largest, 0, 1) if largest > 0 else heat, np.float32)
