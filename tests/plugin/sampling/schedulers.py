"""Schedulers of diffusers, by class and options."""

from __future__ import annotations

from typing import Any

WITH_ONE_OUTPUT: list[tuple[str, dict[str, Any]]] = [
    ("DDIMScheduler", {}),
    ("DDPMScheduler", {}),
    ("EulerDiscreteScheduler", {}),
    ("EulerAncestralDiscreteScheduler", {}),
    ("DPMSolverMultistepScheduler", {}),
    ("DPMSolverMultistepScheduler", {"algorithm_type": "sde-dpmsolver++"}),
    ("UniPCMultistepScheduler", {}),
    ("LCMScheduler", {}),
    ("FlowMatchEulerDiscreteScheduler", {}),
]
SCHEDULERS = [
    *WITH_ONE_OUTPUT,
    ("HeunDiscreteScheduler", {}),
    ("PNDMScheduler", {"skip_prk_steps": True}),
]
