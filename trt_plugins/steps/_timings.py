"""Edit steps against dense steps, and whether they are right."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retouch.trt_plugins._card import Card
from retouch.trt_plugins._kernel_library import KernelLibrary
from retouch.trt_plugins.steps._dit import DitStep
from retouch.trt_plugins.steps._keep import Keep, Record, with_rows_of
from retouch.trt_plugins.steps._kernels import TensorKernels
from retouch.trt_plugins.steps._step import Step
from retouch.trt_plugins.steps._unet import UnetStep

__all__ = ["StepSizes", "StepTiming", "active_block", "step_error", "time_steps"]

_LAUNCHES = 20
_TOLERANCE = 3e-2
"""Of a whole step in float16, whose dense form rounds as often."""


@dataclass(frozen=True)
class StepSizes:
    """What is timed.

    Attributes:
        shares: shares of the positions that are active.
        dit: shape of the transformer, as :class:`DitStep` has it; by default DiT-XL/2 at 512 pixels.
        unet: shape of the UNet, as :class:`UnetStep` has it; by default that of Stable Diffusion 1.5 at 512 pixels.
        device: PyTorch's name of the device.
        dtype: PyTorch's name of the type.
    """

    shares: tuple[float, ...] = (0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0)
    dit: Mapping[str, Any] = field(default_factory=dict)
    unet: Mapping[str, Any] = field(default_factory=dict)
    device: str = "cuda"
    dtype: str = "float16"


@dataclass(frozen=True)
class StepTiming:
    """An edit step.

    Attributes:
        step: the network.
        share: share of the positions that are active.
        rows: their number.
        edit_milliseconds: the median time of an edit step.
        dense_milliseconds: the median time of a dense step.
        launch_microseconds: time that the host takes to launch a captured edit step.
        error: Euclidean norm of the difference from a full evaluation of what an edit means, over that of its result.
    """

    step: str
    share: float
    rows: int
    edit_milliseconds: float
    dense_milliseconds: float
    launch_microseconds: float
    error: float

    @property
    def speedup(self) -> float:
        """Dense over edit."""
        return self.dense_milliseconds / self.edit_milliseconds

    @property
    def passed(self) -> bool:
        """Whether the result is right; NaN never is."""
        return self.error <= _TOLERANCE


def time_steps(card: Card, library: KernelLibrary, sizes: StepSizes) -> Iterator[StepTiming]:
    """The steps of a transformer and of a UNet, for blocks of active positions in the middle of the image."""
    import torch

    kernels = TensorKernels(library, torch)
    options = {"device": sizes.device, "dtype": getattr(torch, sizes.dtype)}
    with torch.inference_mode():
        for step in (
            DitStep(torch, kernels, **sizes.dit, **options),
            UnetStep(torch, kernels, **sizes.unet, **options),
        ):
            yield from _timed(card, step, sizes.shares)


def _timed(card: Card, step: Step, shares: tuple[float, ...]) -> Iterator[StepTiming]:
    base, changed = step.input(0), step.input(1)
    record = Record()
    step.dense(base, record)
    kept = step.prepared(record.kept)
    dense = card.milliseconds(card.captured(lambda: step.dense(changed, Keep())))
    for share in shares:
        active = active_block(step.side, share)
        place = step.place(active)
        rows = changed[place_of(active, changed)].contiguous()
        run = card.captured(lambda r=rows, p=place: step.edit(r, kept, p))  # type: ignore[misc]
        edit = card.milliseconds(run)
        launch = _launch_microseconds(card, run)
        error = step_error(step, base, changed, kept, active)
        yield StepTiming(step.name, share, int(active.sum()), edit, dense, launch, error)


def _launch_microseconds(card: Card, run: Callable[[], None]) -> float:
    """The median time of a call that starts what was captured, with nothing to wait for."""
    times = []
    for _ in range(_LAUNCHES):
        card.synchronise()
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    card.synchronise()
    return float(np.median(times)) * 1e6


def step_error(step: Step, base: Any, changed: Any, kept: Mapping[str, Any], active: NDArray[np.bool_]) -> float:  # noqa: ANN401
    """How far an edit is from the full evaluation in which all inactive rows are put back."""
    place, index = step.place(active), place_of(active, changed)
    mixed = base.clone()
    mixed[index] = changed[index]
    expected = step.dense(mixed, with_rows_of(kept, step.masks(place)))[index].double()
    got = step.edit(changed[index].contiguous(), kept, place).double()
    return float((got - expected).norm() / expected.norm())


def place_of(active: NDArray[np.bool_], like: Any) -> Any:  # noqa: ANN401
    """The numbers of active rows, where a tensor is."""
    import torch

    return torch.from_numpy(np.flatnonzero(active)).to(like.device)


def active_block(side: int, share: float) -> NDArray[np.bool_]:
    """A square block in the middle, of about that share of the positions."""
    length = max(1, round(side * share**0.5))
    start = (side - length) // 2
    mask = np.zeros((side, side), np.bool_)
    mask[start : start + length, start : start + length] = True
    return mask
