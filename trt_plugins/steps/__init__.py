"""Whole steps of known shapes, assembled from the kernels and PyTorch, against the same in PyTorch alone."""

from __future__ import annotations

__all__ = [
    # What is timed
    "StepSizes",
    "StepTiming",
    "time_steps",
    # Its parts
    "DitStep",
    "Keep",
    "Record",
    "Step",
    "UnetStep",
    "with_rows_of",
]

from retouch.trt_plugins.steps._dit import DitStep
from retouch.trt_plugins.steps._keep import Keep, Record, with_rows_of
from retouch.trt_plugins.steps._step import Step
from retouch.trt_plugins.steps._timings import StepSizes, StepTiming, time_steps
from retouch.trt_plugins.steps._unet import UnetStep
