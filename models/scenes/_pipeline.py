"""The trained pipeline: where its weights are, and images of captions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from retouch.errors import ModelError
from retouch.models._load import torch_packages
from retouch.models.scenes._scene import parse_caption

if TYPE_CHECKING:
    from diffusers import StableDiffusionPipeline

__all__ = ["PIPELINE", "Sampling", "load_pipeline", "make_images"]

PIPELINE = Path(__file__).parent / "pipeline"
"""The trained pipeline, in the layout that diffusers loads."""


@dataclass(frozen=True)
class Sampling:
    """How images are made.

    Attributes:
        steps: DDIM steps.
        guidance: weight of classifier-free guidance.
        seed: seed of the first image's noise; every further image has the next.
        batch: images at a time.
    """

    steps: int = 20
    guidance: float = 3.0
    seed: int = 0
    batch: int = 10


def load_pipeline(folder: Path = PIPELINE) -> StableDiffusionPipeline:
    """The ``StableDiffusionPipeline`` of a directory, in single precision and without progress bars.

    Raises:
        ModelError: the directory holds no pipeline.
        EngineMissingError: torch, diffusers or transformers is not installed.
    """
    if not (folder / "model_index.json").exists():
        raise ModelError(f"{folder} holds no model_index.json. Give a directory that the training of scenes wrote.")
    kind = torch_packages()["diffusers"].StableDiffusionPipeline
    pipeline: StableDiffusionPipeline = kind.from_pretrained(folder, local_files_only=True)
    pipeline.set_progress_bar_config(disable=True)
    return pipeline


def make_images(
    pipeline: StableDiffusionPipeline, captions: Sequence[str], sampling: Sampling
) -> npt.NDArray[np.uint8]:
    """Images of captions, uint8 ``[N, 64, 64, 3]``, the same for the same seed whatever the batch.

    Raises:
        FeedError: if a caption is not one of scenes.
    """
    import torch

    for caption in captions:
        parse_caption(caption)
    made = []
    for start in range(0, len(captions), sampling.batch):
        some = list(captions[start : start + sampling.batch])
        seeds = range(sampling.seed + start, sampling.seed + start + len(some))
        images = pipeline(
            some,
            num_inference_steps=sampling.steps,
            guidance_scale=sampling.guidance,
            generator=[torch.Generator().manual_seed(seed) for seed in seeds],
            output_type="np",
        ).images
        made.append(np.rint(images * 255).astype(np.uint8))
    return np.concatenate(made)
