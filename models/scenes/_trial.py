"""Lets a pipeline draw captions and reads what it drew."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from retouch.models.scenes._pipeline import Sampling, make_images
from retouch.models.scenes._reader import read_scene
from retouch.models.scenes._scene import Scene
from retouch.models.scenes._scoring import Score, score_scenes

if TYPE_CHECKING:
    from diffusers import StableDiffusionPipeline

__all__ = ["Trial", "try_pipeline"]


@dataclass(frozen=True)
class Trial:
    """What a pipeline drew.

    Attributes:
        wanted: the scenes whose captions it got.
        images: what it drew, uint8 ``[N, 64, 64, 3]``.
        got: what the reader reads in the images.
    """

    wanted: tuple[Scene, ...]
    images: npt.NDArray[np.uint8]
    got: tuple[Scene, ...]

    @property
    def score(self) -> Score:
        """How much of the captions the images show."""
        return score_scenes(zip(self.wanted, self.got, strict=True))


def try_pipeline(pipeline: StableDiffusionPipeline, scenes: Sequence[Scene], sampling: Sampling) -> Trial:
    """Images of the scenes' captions, read back."""
    images = make_images(pipeline, [scene.caption for scene in scenes], sampling)
    return Trial(tuple(scenes), images, tuple(map(read_scene, images)))
