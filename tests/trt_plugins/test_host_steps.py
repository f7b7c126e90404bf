"""Edit steps by the kernels, on the host, against full evaluations in PyTorch that put inactive rows back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from retouch.trt_plugins._kernel_library import KernelLibrary
from retouch.trt_plugins.steps import DitStep, Keep, Record, Step, StepSizes, UnetStep, time_steps
from retouch.trt_plugins.steps._kernels import TensorKernels
from retouch.trt_plugins.steps._timings import active_block, step_error
from tests.trt_plugins.test_host_gpu_check import Host

DIT = {"side": 6, "blocks": 2, "heads": 2, "width": 8}
UNET = {"side": 4, "channels": (4, 8), "attention": 1, "heads": 2, "groups": 4, "text": (3, 8)}
HOST = {"device": "cpu", "dtype": torch.float32}
STEPS = {
    "dit": lambda kernels: DitStep(torch, kernels, **DIT, **HOST),
    "unet": lambda kernels: UnetStep(torch, kernels, **UNET, **HOST),
    "larger": lambda kernels: UnetStep(torch, kernels, **UNET | {"side": 8, "attention": 0}, **HOST),
}


@pytest.fixture(scope="module")
def kernels(host_library: Path) -> TensorKernels:
    return TensorKernels(KernelLibrary(host_library), torch)


@pytest.mark.parametrize("make", STEPS.values(), ids=STEPS)
def test_an_edit_is_a_full_evaluation_with_inactive_rows_put_back(
    make: Callable[[TensorKernels], Step], kernels: TensorKernels
) -> None:
    step = make(kernels)
    base, changed = step.input(0), step.input(1)
    record = Record()
    plain = step.dense(base, Keep())
    assert torch.allclose(step.dense(base, record), plain, atol=1e-5)
    kept = step.prepared(record.kept)
    generator = np.random.default_rng(0)
    for active in (
        active_block(step.side, 0.1),
        active_block(step.side, 1.0),
        generator.random((step.side, step.side)) < 0.2,
    ):
        assert step_error(step, base, changed, kept, active) < 1e-5
        place = step.place(active)
        rows = np.flatnonzero(active)
        unchanged = step.edit(base[rows].contiguous(), kept, place)
        assert torch.allclose(unchanged, plain[rows], atol=1e-4)


def test_steps_are_timed_at_every_share(host_library: Path) -> None:
    sizes = StepSizes((0.1, 1.0), DIT, UNET, "cpu", "float32")
    found = list(time_steps(Host(), KernelLibrary(host_library), sizes))
    assert [(timing.step, timing.share) for timing in found] == [
        (step, share) for step in ("DiT", "UNet") for share in (0.1, 1.0)
    ]
    assert [timing.rows for timing in found] == [4, 36, 1, 16]
    assert all(timing.passed and timing.speedup > 0 for timing in found)


def test_a_wrong_kernel_is_found(host_library: Path) -> None:
    class Broken(KernelLibrary):
        def call(self, name: str, *arguments: Any) -> None:
            if name == "edit_attention":
                arguments = (*arguments[:-3], arguments[-3] * 5, *arguments[-2:])
            super().call(name, *arguments)

    sizes = StepSizes((0.5,), DIT, UNET, "cpu", "float32")
    assert [timing.passed for timing in time_steps(Host(), Broken(host_library), sizes)] == [False, False]
