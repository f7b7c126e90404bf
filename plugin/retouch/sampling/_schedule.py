"""A scheduler of diffusers whose steps can be made again."""

from __future__ import annotations

import copy
import inspect
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from retouch.errors import SamplingError

if TYPE_CHECKING:
    import torch

Latents = NDArray[Any]


class Scheduler(Protocol):
    """What is asked of a scheduler; those of diffusers have it."""

    @property
    def config(self) -> Mapping[str, Any]:
        """The options it was made with."""

    @property
    def timesteps(self) -> Sequence[Any]:
        """The times of the steps, once ``set_timesteps`` was called."""

    def set_timesteps(self, num_inference_steps: int) -> None:
        """Prepare for so many steps."""

    def step(self, model_output: Any, timestep: Any, sample: Any, **options: Any) -> Any:  # noqa: ANN401
        """The latents after a step."""


@dataclass(frozen=True)
class Schedule:
    """A scheduler, and how many steps it makes.

    The scheduler that is given stays as it is: every loop steps a copy, so that a stochastic or multistep scheduler can
    be brought to any step again by replaying the outputs before it.

    Attributes:
        scheduler: one of diffusers: DDIM, DDPM, Euler, Euler ancestral, DPM-Solver++, UniPC, LCM, flow matching.
        steps: number of steps asked for. Second-order schedulers evaluate the model more often than that.
        options: further arguments of every step that takes them, as ``{"eta": 0.5}`` of DDIM.
    """

    scheduler: Scheduler
    steps: int
    options: tuple[tuple[str, Any], ...] = ()

    def __post_init__(self) -> None:
        if not (type(self.steps) is int and self.steps >= 1):
            raise SamplingError(f"Expected at least 1 step, as an integer, got {self.steps!r}.")
        for method in ("set_timesteps", "step", "config"):
            if not hasattr(self.scheduler, method):
                raise SamplingError(
                    f"Expected a scheduler of diffusers, got {type(self.scheduler).__name__}, which has no {method}. "
                    "Build one with diffusers.DDIMScheduler(...), for example."
                )

    def start(self, seed: int) -> Stepper:
        """A loop over the steps whose noise comes from that seed."""
        scheduler = copy.deepcopy(self.scheduler)
        scheduler.set_timesteps(self.steps)
        return Stepper(scheduler, seed, dict(self.options))

    @cached_property
    def timesteps(self) -> tuple[float, ...]:
        """The time of every evaluation."""
        return tuple(float(time) for time in self.start(0).timesteps)

    @cached_property
    def fingerprint(self) -> str:
        """The same for schedules that make the same steps."""
        config = {name: value for name, value in self.scheduler.config.items() if not name.startswith("_")}
        parts = [type(self.scheduler).__name__, config, self.timesteps, self.options]
        return json.dumps(parts, sort_keys=True, default=str)


class Stepper:
    """One loop over a schedule: stepped in order, from the first step on."""

    def __init__(self, scheduler: Any, seed: int, options: dict[str, Any]) -> None:  # noqa: ANN401
        """Takes over the scheduler.

        Args:
            scheduler: a scheduler of diffusers of its own, prepared for the number of steps.
            seed: seed of all noise.
            options: further arguments of a step.
        """
        import torch

        self._scheduler = scheduler
        self._scaled: int | None = None
        self._generator = torch.Generator().manual_seed(seed)
        known = inspect.signature(scheduler.step).parameters
        self._options = {name: value for name, value in options.items() if name in known}
        if "generator" in known:
            self._options["generator"] = self._generator

    @property
    def timesteps(self) -> Sequence[Any]:
        """The times of the steps."""
        times: Sequence[Any] = self._scheduler.timesteps
        return times

    def noise(self, shape: tuple[int, ...]) -> Latents:
        """The latents before the first step (float32): the first that the seed draws, as in diffusers' pipelines."""
        import torch

        drawn = torch.randn(shape, generator=self._generator)
        return _array(drawn * float(getattr(self._scheduler, "init_noise_sigma", 1.0)))

    def noised(self, latents: Latents, index: int) -> Latents:
        """The finished latents with fresh noise of this seed, as they may be before a step."""
        import torch

        noise = torch.randn(latents.shape, generator=self._generator)
        time = self.timesteps[index : index + 1]
        add = getattr(self._scheduler, "scale_noise", None) or self._scheduler.add_noise
        if add.__name__ == "scale_noise":
            return _array(add(_tensor(latents), time, noise))
        return _array(add(_tensor(latents), noise, time))

    def scaled(self, latents: Latents, index: int) -> Latents:
        """The latents as the model takes them at a step."""
        self._scaled = index
        scale = getattr(self._scheduler, "scale_model_input", None)
        return latents if scale is None else _array(scale(_tensor(latents), self.timesteps[index]))

    def step(self, output: Latents, index: int, latents: Latents) -> Latents:
        """The latents after a step, from the model's output and the latents before it."""
        import torch

        if self._scaled != index:
            self.scaled(latents, index)  # some schedulers find their place in the schedule here
        time = self.timesteps[index]
        with torch.inference_mode():
            made = self._scheduler.step(_tensor(output), time, _tensor(latents), **self._options)
        return _array(made.prev_sample)


def _tensor(array: Latents) -> torch.Tensor:
    import torch

    return torch.from_numpy(np.array(array))


def _array(tensor: torch.Tensor) -> Latents:
    array: Latents = tensor.numpy()
    array.setflags(write=False)
    return array
