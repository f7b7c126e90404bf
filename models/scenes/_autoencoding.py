"""How well an autoencoder restores scenes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from retouch.models.scenes._image_course import as_pixels
from retouch.models.scenes._scene import Scene

if TYPE_CHECKING:
    from diffusers import AutoencoderKL

__all__ = ["restoration_psnr"]


def restoration_psnr(autoencoder: AutoencoderKL, scenes: Sequence[Scene]) -> float:
    """Peak signal to noise of scenes that went through the autoencoder, in dB of the whole set."""
    import torch

    pixels = as_pixels(list(scenes))
    with torch.no_grad():
        restored = autoencoder.decode(autoencoder.encode(pixels).latent_dist.mean).sample.clamp(-1, 1)
    return float(10 * np.log10(4 / (restored - pixels).square().mean().item()))
