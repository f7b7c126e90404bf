"""The pipeline of scenes, exported and calibrated with what it is used for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from retouch.calibrate import MomentExample, calibrate, calibrate_moments
from retouch.models import Sizes, TorchOptions, export_pipeline
from retouch.models.scenes import training_scenes
from retouch.sampling import Generation, TextToImage
from retouch.validation.generations._quality import GUIDANCE, STEPS

__all__ = ["calibrate_generations", "export_calibrated"]

Tell = Callable[[str], None]
_Pair = tuple[Generation, Generation]

_SEED = 23
_PAIRS = 6
"""Pairs of scenes, of which parts of one are pasted into the other; a calibration needs five base runs."""
_SHARES = (0.1, 0.45, 0.85)
"""Where in a generation the denoiser's examples lie: noise, a layout, details; every pair gives one."""


def export_calibrated(pipeline: Path, target: Path, threads: int, tell: Tell) -> None:
    """Exports a pipeline of scenes for guidance, and calibrates the bundles of its denoiser and its decoder.

    Break-evens of both; GroupNorm modes of the denoiser only: calibrations do not foresee what decoders err.

    Args:
        pipeline: the pipeline, in diffusers' format.
        target: where the exported one goes.
        threads: threads per run.
        tell: called with a line before every step.
    """
    export_pipeline(pipeline, target, TorchOptions(sizes=Sizes(batch=2)), tell=tell)
    calibrate_generations(target, threads, tell)


def calibrate_generations(exported: Path, threads: int, tell: Tell, steps: int = STEPS) -> None:
    """Measures break-evens, and what the denoiser's GroupNorm modes err on scenes that the pipeline was trained on.

    Args:
        exported: the exported pipeline.
        threads: threads per run.
        tell: called with a line before every step.
        steps: number of steps that the scenes are generated in.
    """
    tell("calibrate: generate scenes")
    with TextToImage(exported, threads=threads, group_norm="cached") as editor:
        pairs = list(_pairs(editor, steps))
        examples = [*_of_the_denoiser(pairs)]
    for name in ("unet", "vae_decoder"):
        calibrate(exported / name / "bundle", threads=threads, progress=partial(_named, tell, name))
    calibrate_moments(exported / "unet" / "bundle", examples, threads=threads, progress=partial(_named, tell, "unet"))


def _named(tell: Tell, name: str, line: str) -> None:
    tell(f"calibrate {name}: {line}")


def _pairs(editor: TextToImage, steps: int) -> Iterator[_Pair]:
    scenes = training_scenes(np.random.default_rng(_SEED), 2 * _PAIRS)
    made = [
        editor.generate(scene.caption, steps=steps, guidance=GUIDANCE, seed=seed) for seed, scene in enumerate(scenes)
    ]
    yield from zip(made[::2], made[1::2], strict=True)


def _of_the_denoiser(pairs: Sequence[_Pair]) -> Iterator[MomentExample]:
    for number, pair in enumerate(pairs):
        step = int(_SHARES[number % len(_SHARES)] * len(pair[0].trajectory.steps))
        one, other = (generation.trajectory.steps[step].runs[0] for generation in pair)
        editable = pair[0].trajectory.denoiser.manifest.editable.input
        yield MomentExample(dict(one.feeds), [other.feeds[editable]])  # they stay when their session closes
