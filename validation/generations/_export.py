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
from retouch.session import Run
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

    Args:
        pipeline: the pipeline, in diffusers' format.
        target: where the exported one goes.
        threads: threads per run.
        tell: called with a line before every step.
    """
    export_pipeline(pipeline, target, TorchOptions(sizes=Sizes(batch=2)), tell=tell)
    calibrate_generations(target, threads, tell)


def calibrate_generations(exported: Path, threads: int, tell: Tell, steps: int = STEPS) -> None:
    """Measures break-evens, and what GroupNorm modes err on latents of scenes that the pipeline was trained on.

    Args:
        exported: the exported pipeline.
        threads: threads per run.
        tell: called with a line before every step.
        steps: number of steps that the scenes are generated in.
    """
    tell("calibrate: generate scenes")
    with TextToImage(exported, threads=threads, group_norm="cached") as editor:
        pairs = list(_pairs(editor, steps))
        examples = {"unet": [*_of_the_denoiser(pairs)], "vae_decoder": [*_of_the_decoder(pairs)]}
    for name, own in examples.items():
        bundle = exported / name / "bundle"
        progress = partial(_named, tell, name)
        calibrate(bundle, threads=threads, progress=progress)
        calibrate_moments(bundle, own, threads=threads, progress=progress)


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
        yield _example(one, other, pair[0].trajectory.denoiser.manifest.editable.input)


def _of_the_decoder(pairs: Sequence[_Pair]) -> Iterator[MomentExample]:
    for one, other in ((pair[0].decoded, pair[1].decoded) for pair in pairs):
        assert one is not None and other is not None, "they were recorded"
        yield _example(one, other, next(iter(one.feeds)))


def _example(one: Run, other: Run, editable: str) -> MomentExample:
    """Feeds stay when their session closes."""
    return MomentExample(dict(one.feeds), [other.feeds[editable]])
