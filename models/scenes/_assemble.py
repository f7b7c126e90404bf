"""Writes trained networks as a pipeline of diffusers."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import TYPE_CHECKING

from retouch.models.scenes._networks import make_scheduler

if TYPE_CHECKING:
    from diffusers import AutoencoderKL, StableDiffusionPipeline, UNet2DConditionModel
    from transformers import CLIPTextModel, CLIPTokenizer

__all__ = ["assemble", "write_pipeline"]


def assemble(
    tokenizer: CLIPTokenizer,
    text_encoder: CLIPTextModel,
    autoencoder: AutoencoderKL,
    denoiser: UNet2DConditionModel,
    scale: float,
) -> StableDiffusionPipeline:
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


def write_pipeline(pipeline: StableDiffusionPipeline, folder: Path) -> None:
    """Writes the pipeline with weights in half precision; the pipeline itself stays as it is."""
    import torch

    copy.deepcopy(pipeline).to(torch.float16).save_pretrained(folder, safe_serialization=True)
    # Releases of transformers that optimum asks for read the tokenizer from these two files only.
    pipeline.tokenizer.backend_tokenizer.model.save(str(folder / "tokenizer"))
    # transformers loads in the precision that this file names, diffusers in single: they have to agree.
    config = folder / "text_encoder" / "config.json"
    settings = {**json.loads(config.read_text(encoding="utf-8")), "dtype": "float32"}
    config.write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")
