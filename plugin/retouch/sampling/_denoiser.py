"""The network of a sampling loop: a bundle's session, and what its inputs mean."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from retouch.bundle import Manifest
from retouch.engines import Value
from retouch.errors import SamplingError
from retouch.region import Region
from retouch.sampling._conditions import Conditions, Feeds
from retouch.session import EditSession, Run

_TIMES = ("timestep", "timesteps", "t", "sigma", "time")


class Guidance(Enum):
    """How classifier-free guidance evaluates its two branches."""

    CALLS = "calls"
    """One call after the other, by a bundle whose batch is that of the latents."""
    BATCH = "batch"
    """Both in one call, by a bundle whose batch is twice that of the latents."""


@dataclass(frozen=True)
class Denoiser:
    """A session on a denoiser's bundle, and what its inputs mean.

    Attributes:
        session: the session; it stays the caller's to close.
        guidance: how guidance evaluates its branches.
        sample: the input that takes the latents; ``None`` means the bundle's editable input.
        timestep: the input that takes the time; ``None`` means the one with a usual name.
        output: the output that is the prediction; ``None`` means the first one.
    """

    session: EditSession
    guidance: Guidance = Guidance.CALLS
    sample: str | None = None
    timestep: str | None = None
    output: str | None = None
    _shared: WeakKeyDictionary[Conditions, tuple[Mapping[str, Value], ...]] = field(
        default_factory=WeakKeyDictionary, init=False, repr=False, compare=False
    )

    @property
    def manifest(self) -> Manifest:
        """The bundle's manifest."""
        return self.session.bundle.manifest

    @cached_property
    def latents_shape(self) -> tuple[int, ...]:
        """The shape of the latents of a generation."""
        batch, *rest = self._shape(self._sample)
        if self.guidance is Guidance.CALLS:
            return (batch, *rest)
        if batch % 2:
            raise SamplingError(
                f"Expected a bundle with an even batch for guidance in one call, got a batch of {batch}. "
                "Export with --fix batch=2, or use Guidance.CALLS."
            )
        return (batch // 2, *rest)

    def feeds(self, latents: NDArray[Any], time: float | None, conditions: Conditions) -> tuple[Mapping[str, Any], ...]:
        """The feeds of every call that a step makes; without a time, all others."""
        if self.guidance is Guidance.BATCH:
            latents = np.concatenate([latents, latents])
        moment = {} if time is None else {self._time: np.full(self._shape(self._time), time)}
        return tuple({**branch, self._sample: latents, **moment} for branch in self._branches(conditions))

    def _branches(self, conditions: Conditions) -> tuple[Mapping[str, Value], ...]:
        """The feeds of every call that are the same in all steps; checked, copied and put together once."""
        found = self._shared.get(conditions)
        if found is None:
            branches = conditions.branches()
            if self.guidance is Guidance.BATCH:
                branches = (_stacked(branches if len(branches) == 2 else branches * 2),)
            found = self._shared[conditions] = tuple(self.session.values(branch) for branch in branches)
        return found

    def guided(self, outputs: Sequence[NDArray[Any]], conditions: Conditions) -> NDArray[Any]:
        """The prediction from the outputs of a step's calls, in float32 and with the latents' channels."""
        sides = tuple(output.astype(np.float32, copy=False) for output in outputs)
        if self.guidance is Guidance.BATCH:
            halves = np.split(sides[0], 2)
            sides = (halves[0], halves[1]) if conditions.negative is not None else (halves[1],)
        channels = self.latents_shape[1]
        # Models that predict a variance too give it in channels of its own, after the prediction.
        return conditions.guided(tuple(side if side.ndim < 4 else side[:, :channels] for side in sides))

    def base(self, latents: NDArray[Any], time: float, conditions: Conditions, *, record: bool) -> tuple[Run, ...]:
        """The runs of the full model at a step; if one fails, the others are dropped."""
        runs: list[Run] = []
        try:
            calls = self.feeds(latents, time, conditions)
            runs.extend(self.session.base(feeds, record=record) for feeds in calls)
        except BaseException:
            for run in runs:
                run.close()
            raise
        return tuple(runs)

    def predicted(self, runs: Sequence[Run], conditions: Conditions) -> NDArray[Any]:
        """The prediction of a step's runs."""
        return self.guided([run.outputs[self.prediction] for run in runs], conditions)

    @property
    def prediction(self) -> str:
        """The name of the output that is the prediction."""
        names = [item.tensor.name for item in self.manifest.outputs]
        return names[0] if self.output is None else self._known(self.output, names, "output")

    def mask(self, region: Region) -> NDArray[np.bool_]:
        """A region's mask, as it broadcasts against the latents."""
        editable = self.manifest.editable
        dims = self.manifest.grid(editable.grid).dims
        if region.mask.shape != dims:
            raise SamplingError(
                f"Expected a region on the grid of the latents, {dims}, got one on {region.mask.shape}. "
                f"Bring it there with region.resampled({dims})."
            )
        shape = [1] * len(self.latents_shape)
        for axis, size in zip(editable.axes, dims, strict=True):
            shape[axis] = size
        return region.mask.reshape(shape)

    @cached_property
    def _sample(self) -> str:
        return self.sample or self.manifest.editable.input

    @cached_property
    def _time(self) -> str:
        names = [item.name for item in self.manifest.inputs]
        if self.timestep is not None:
            return self._known(self.timestep, names, "input")
        found = [name for name in _TIMES if name in names]
        if not found:
            raise SamplingError(
                f"Expected an input named {', '.join(_TIMES)}, got {', '.join(names)}. Say which takes the time with "
                "Denoiser(timestep=...)."
            )
        return found[0]

    def _shape(self, name: str) -> tuple[int, ...]:
        names = [item.name for item in self.manifest.inputs]
        self._known(name, names, "input")
        return self.manifest.inputs[names.index(name)].shape

    @staticmethod
    def _known(name: str, names: Sequence[str], kind: str) -> str:
        if name not in names:
            raise SamplingError(f"Expected an {kind} of the bundle among {', '.join(names)}, got {name!r}.")
        return name


def _stacked(branches: Sequence[Feeds]) -> Feeds:
    return {name: np.concatenate([branch[name] for branch in branches]) for name in branches[0]}
