"""Teaches the denoiser to make latents of scenes out of noise and captions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from retouch.models.scenes._networks import LATENT_SIDE
from retouch.models.scenes._scene import Scene
from retouch.models.scenes._vocabulary import SIDE

if TYPE_CHECKING:
    import torch
    from diffusers import DDIMScheduler, UNet2DConditionModel

__all__ = ["Examples", "Lesson", "denoise_loss", "emphasis", "make_lesson"]

_NO_CAPTION = 0.1  # share of examples without caption, for classifier-free guidance
_LATE = 0.6  # below one, more of the steps are noisy ones
_NOISIEST = 0.05  # share of the steps where even the background's colour drowns in noise, and only captions tell it:
_OF_NOISIEST = 0.4  # share of examples from there; with few the denoiser is slow to find out that captions matter
_OF_NOISIEST_AT_FIRST = 0.8
_FIRST = 1100  # steps
_EMPHASIS = 3.0
_CELL = LATENT_SIDE / 3


@dataclass(frozen=True)
class Examples:
    """What the denoiser learns from.

    Attributes:
        latents: scaled latents, ``[N, 4, 32, 32]``.
        text: encoded captions, ``[N, 32, 128]``.
        emphasis: how much every latent counts, ``[N, 1, 32, 32]``.
        no_text: the encoded empty caption, ``[1, 32, 128]``.
        scale: what latents were multiplied by, so that their spread is one.
    """

    latents: torch.Tensor
    text: torch.Tensor
    emphasis: torch.Tensor
    no_text: torch.Tensor
    scale: float


@dataclass(frozen=True)
class Lesson:
    """Noisy latents, their steps and captions, and the velocity to predict."""

    noisy: torch.Tensor
    steps: torch.Tensor
    text: torch.Tensor
    velocity: torch.Tensor
    emphasis: torch.Tensor


def emphasis(scenes: list[Scene]) -> torch.Tensor:
    """More weight for the cells that hold objects, ``[N, 1, 32, 32]``; a function of the caption, so no bias."""
    import torch

    weights = torch.ones(len(scenes), 1, LATENT_SIDE, LATENT_SIDE)
    for index, scene in enumerate(scenes):
        for one in scene.objects:
            middle = (
                (torch.tensor(one.place.centre) * LATENT_SIDE / SIDE - _CELL / 2).round().int().clamp(min=0).tolist()
            )
            side = round(_CELL)
            weights[index, 0, middle[0] : middle[0] + side, middle[1] : middle[1] + side] = _EMPHASIS
    return weights


def make_lesson(examples: Examples, scheduler: DDIMScheduler, step: int, size: int) -> Lesson:
    """A batch for one step of the training, always the same."""
    import torch

    generator = torch.Generator().manual_seed(step)

    chosen = torch.randint(len(examples.latents), (size,), generator=generator)
    latents = examples.latents[chosen].float()
    noise = torch.randn(latents.shape, generator=generator)
    count = scheduler.config.num_train_timesteps
    parts = torch.rand(2, size, generator=generator)
    share = _OF_NOISIEST_AT_FIRST if step < _FIRST else _OF_NOISIEST
    level = torch.where(torch.rand(size, generator=generator) < share, 1 - _NOISIEST * parts[0], parts[1] ** _LATE)
    steps = (level * count).long().clamp(max=count - 1)
    silent = (torch.rand(size, generator=generator) < _NO_CAPTION)[:, None, None]
    return Lesson(
        scheduler.add_noise(latents, noise, steps).to(memory_format=torch.channels_last),
        steps,
        torch.where(silent, examples.no_text, examples.text[chosen]).float(),
        scheduler.get_velocity(latents, noise, steps),
        torch.where(silent[..., None], 1.0, examples.emphasis[chosen].float()),
    )


def denoise_loss(denoiser: UNet2DConditionModel, lesson: Lesson) -> torch.Tensor:
    """Mean squared error of the predicted velocity, places with objects counting more."""
    predicted = denoiser(lesson.noisy, lesson.steps, lesson.text, return_dict=False)[0]
    loss: torch.Tensor = ((predicted.float() - lesson.velocity).square() * lesson.emphasis).mean()
    return loss
