"""Writes trained networks as a pipeline of diffusers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from retouch.models.scenes._networks import make_scheduler

__all__ = ["assemble", "write_pipeline"]


def assemble(tokenizer: Any, text_encoder: Any, autoencoder: Any, denoiser: Any, scale: float) -> Any:
    """A ``StableDiffusionPipeline`` of the networks; ``scale`` is what latents are multiplied by."""
    from diffusers import StableDiffusionPipeline

    autoencoder.register_to_config(scaling_factor=scale)
    pipeline = StableDiffusionPipeline(
        vae=autoencoder,
        text_encoder=text_encoder,
        tokenizer=tokenizer,
        unet=denoiser,
        scheduler=make_scheduler(),
        safety_checker=None,
        feature_extractor=None,
        requires_safety_checker=False,
    )
    pipeline.set_progress_bar_config(disable=True)
    return pipeline


def write_pipeline(pipeline: Any, folder: Path) -> None:
    """Writes the pipeline with weights in half precision."""
    import torch

    pipeline.to(torch.float16).save_pretrained(folder, safe_serialization=True)
