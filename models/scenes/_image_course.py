"""Teaches the autoencoder to keep scenes in latents."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from retouch.models.scenes._render import render
from retouch.models.scenes._scene import Scene

if TYPE_CHECKING:
    import torch
    from diffusers import AutoencoderKL

__all__ = ["as_pixels", "decoder_loss", "image_loss"]

_DIVERGENCE = 1e-4  # weight: keeps latents smooth and near unit scale, at little cost in sharpness


def as_pixels(scenes: list[Scene]) -> torch.Tensor:
    """The scenes as the autoencoder takes them, float32 ``[N, 3, 64, 64]`` from -1 to 1."""
    import torch

    images = np.stack([render(scene) for scene in scenes])
    return torch.from_numpy(images).permute(0, 3, 1, 2).float() / 127.5 - 1


def image_loss(autoencoder: AutoencoderKL, pixels: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Mean squared error of what comes back, and a little of the latents' divergence from unit Gaussians."""
    latents = autoencoder.encode(pixels).latent_dist
    restored = autoencoder.decode(latents.sample(generator)).sample
    divergence = latents.kl().mean() / latents.mean[0].numel()
    loss: torch.Tensor = (restored.float() - pixels).square().mean() + _DIVERGENCE * divergence
    return loss


def decoder_loss(autoencoder: AutoencoderKL, pixels: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Mean squared error of what the decoder makes of latents, those of the encoder and a little noise."""
    import torch

    with torch.no_grad():
        latents = autoencoder.encode(pixels).latent_dist.sample(generator)
    loss: torch.Tensor = (autoencoder.decode(latents).sample.float() - pixels).square().mean()
    return loss
