"""The networks of the pipeline, untrained, and its scheduler."""

from __future__ import annotations

from typing import TYPE_CHECKING

from retouch.models.scenes._tokens import LENGTH

if TYPE_CHECKING:
    from diffusers import AutoencoderKL, DDIMScheduler, UNet2DConditionModel
    from transformers import CLIPTextModel, CLIPTokenizer

__all__ = [
    "LATENT_CHANNELS",
    "LATENT_SIDE",
    "TEXT_WIDTH",
    "make_autoencoder",
    "make_denoiser",
    "make_scheduler",
    "make_text_encoder",
]

LATENT_CHANNELS = 4
LATENT_SIDE = 32
TEXT_WIDTH = 128


def make_autoencoder() -> AutoencoderKL:
    """An ``AutoencoderKL`` from 64x64 pixels to 32x32 latents."""
    from diffusers import AutoencoderKL

    return AutoencoderKL(
        down_block_types=("DownEncoderBlock2D",) * 2,
        up_block_types=("UpDecoderBlock2D",) * 2,
        block_out_channels=(16, 32),
        layers_per_block=1,
        latent_channels=LATENT_CHANNELS,
        norm_num_groups=8,
        sample_size=2 * LATENT_SIDE,
        mid_block_add_attention=False,
    )


def make_text_encoder(tokenizer: CLIPTokenizer) -> CLIPTextModel:
    """A ``CLIPTextModel`` for the tokenizer's vocabulary."""
    from transformers import CLIPTextConfig, CLIPTextModel

    return CLIPTextModel(
        CLIPTextConfig(
            vocab_size=len(tokenizer),
            hidden_size=TEXT_WIDTH,
            intermediate_size=4 * TEXT_WIDTH,
            projection_dim=TEXT_WIDTH,
            num_hidden_layers=3,
            num_attention_heads=4,
            max_position_embeddings=LENGTH,
            bos_token_id=tokenizer.bos_token_id,
            eos_token_id=tokenizer.eos_token_id,
            pad_token_id=tokenizer.pad_token_id,
        )
    )


def make_denoiser() -> UNet2DConditionModel:
    """A ``UNet2DConditionModel`` of two levels that attends to the caption at 16x16: few nodes that do much each."""
    from diffusers import UNet2DConditionModel

    return UNet2DConditionModel(
        sample_size=LATENT_SIDE,
        in_channels=LATENT_CHANNELS,
        out_channels=LATENT_CHANNELS,
        block_out_channels=(64, 128),
        layers_per_block=1,
        down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"),
        up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"),
        cross_attention_dim=TEXT_WIDTH,
        attention_head_dim=2,
        norm_num_groups=16,
    )


def make_scheduler() -> DDIMScheduler:
    """A ``DDIMScheduler`` whose last training step is pure noise, so that sampling begins where training ended."""
    from diffusers import DDIMScheduler

    return DDIMScheduler(
        num_train_timesteps=1000,
        beta_start=0.00085,
        beta_end=0.012,
        beta_schedule="scaled_linear",
        clip_sample=False,
        set_alpha_to_one=False,
        steps_offset=1,
        prediction_type="v_prediction",
        timestep_spacing="trailing",
        rescale_betas_zero_snr=True,
    )
