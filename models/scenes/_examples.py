"""Scenes as the denoiser learns them: encoded once, by networks that are trained already."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from retouch.models.scenes._denoise_course import Examples, emphasis
from retouch.models.scenes._draw import training_scenes
from retouch.models.scenes._image_course import as_pixels
from retouch.models.scenes._scene import Scene

if TYPE_CHECKING:
    import torch
    from diffusers import AutoencoderKL
    from transformers import CLIPTextModel, CLIPTokenizer

__all__ = ["encode_captions", "encode_scenes", "make_examples"]

_AT_A_TIME = 64
_SEED = 10**6
_ODDS = (0.04, 0.26, 0.3, 0.4)  # of no, one, two, three objects: scenes that show more teach more


def make_examples(
    path: Path, count: int, tokenizer: CLIPTokenizer, text_encoder: CLIPTextModel, autoencoder: AutoencoderKL
) -> Examples:
    """The examples of a file, which is written first if it does not exist; always the same for the same networks."""
    import torch

    if not path.exists():
        parts = [
            encode_scenes(
                training_scenes(np.random.default_rng(seed), _AT_A_TIME, _ODDS), tokenizer, text_encoder, autoencoder
            )
            for seed in range(_SEED, _SEED + count // _AT_A_TIME)
        ]
        latents, text, weights = (torch.cat(some).half() for some in zip(*parts, strict=True))
        no_text = encode_captions([""], tokenizer, text_encoder).half()
        scale = 1 / latents.float().std().item()
        examples = Examples((latents * scale).half(), text, weights, no_text, scale)
        torch.save(asdict(examples), path)
    return Examples(**torch.load(path, weights_only=True))


def encode_scenes(
    scenes: list[Scene], tokenizer: CLIPTokenizer, text_encoder: CLIPTextModel, autoencoder: AutoencoderKL
) -> tuple[torch.Tensor, ...]:
    """Unscaled latents, encoded captions and emphasis of scenes."""
    import torch

    with torch.no_grad():
        latents = autoencoder.encode(as_pixels(scenes)).latent_dist.mean
    text = encode_captions([scene.caption for scene in scenes], tokenizer, text_encoder)
    return latents, text, emphasis(scenes)


def encode_captions(captions: list[str], tokenizer: CLIPTokenizer, text_encoder: CLIPTextModel) -> torch.Tensor:
    """What the denoiser attends to, ``[N, 32, 128]``."""
    import torch

    tokens = tokenizer(captions, padding="max_length", return_tensors="pt").input_ids
    with torch.no_grad():
        embeddings: torch.Tensor = text_encoder(tokens).last_hidden_state
    return embeddings
