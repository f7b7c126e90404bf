"""The families that are measured: models in small, with the rows of 64x64 latents or 512 tokens."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from retouch.errors import ModelError
from retouch.models import Sizes
from retouch.validation.benchmarks.families._family import Family, ReferenceSource, TorchSource

_UNET = "diffusers.UNet2DConditionModel"
_LATENTS = 64
_DOWN = (*("CrossAttnDownBlock2D",) * 3, "DownBlock2D")
_UP = ("UpBlock2D", *("CrossAttnUpBlock2D",) * 3)

_DDPM: Mapping[str, Any] = {
    "sample_size": 64,
    "in_channels": 3,
    "out_channels": 3,
    "block_out_channels": (96, 96, 192, 192),
    "layers_per_block": 2,
    "down_block_types": ("DownBlock2D", "DownBlock2D", "AttnDownBlock2D", "DownBlock2D"),
    "up_block_types": ("UpBlock2D", "AttnUpBlock2D", "UpBlock2D", "UpBlock2D"),
}
_SD15: Mapping[str, Any] = {
    "sample_size": _LATENTS,
    "in_channels": 4,
    "out_channels": 4,
    "block_out_channels": (64, 128, 256, 256),
    "cross_attention_dim": 256,
    "attention_head_dim": 8,
    "down_block_types": _DOWN,
    "up_block_types": _UP,
}
_SD21: Mapping[str, Any] = {**_SD15, "attention_head_dim": (2, 4, 8, 8), "use_linear_projection": True}
_SDXL: Mapping[str, Any] = {
    **_SD15,
    "block_out_channels": (64, 128, 256),
    "attention_head_dim": (2, 4, 8),
    "use_linear_projection": True,
    "transformer_layers_per_block": (1, 2, 10),
    "down_block_types": ("DownBlock2D", "CrossAttnDownBlock2D", "CrossAttnDownBlock2D"),
    "up_block_types": ("CrossAttnUpBlock2D", "CrossAttnUpBlock2D", "UpBlock2D"),
    "addition_embed_type": "text_time",
    "addition_time_embed_dim": 64,
    "projection_class_embeddings_input_dim": 6 * 64 + 256,
}
_AUTOENCODER: Mapping[str, Any] = {
    "sample_size": 256,
    "in_channels": 3,
    "out_channels": 3,
    "latent_channels": 4,
    "block_out_channels": (32, 64, 128, 128),
    "layers_per_block": 2,
    "down_block_types": ("DownEncoderBlock2D",) * 4,
    "up_block_types": ("UpDecoderBlock2D",) * 4,
}
_TRANSFORMER: Mapping[str, Any] = {
    "num_attention_heads": 6,
    "attention_head_dim": 64,
    "num_layers": 6,
    "sample_size": _LATENTS,
    "patch_size": 2,
}
_DIT: Mapping[str, Any] = {
    **_TRANSFORMER,
    "in_channels": 4,
    "out_channels": 8,
    "num_embeds_ada_norm": 1000,
    "norm_num_groups": 32,
}
_PIXART: Mapping[str, Any] = {
    **_TRANSFORMER,
    "in_channels": 4,
    "out_channels": 8,
    "cross_attention_dim": 384,
    "caption_channels": 256,
    "norm_num_groups": 32,
}
_SD3: Mapping[str, Any] = {
    **_TRANSFORMER,
    "in_channels": 16,
    "out_channels": 16,
    "joint_attention_dim": 256,
    "caption_projection_dim": 384,
    "pooled_projection_dim": 128,
    "pos_embed_max_size": 64,
}
_SD35: Mapping[str, Any] = {**_SD3, "qk_norm": "rms_norm", "dual_attention_layers": (0, 1, 2)}
_FLUX: Mapping[str, Any] = {
    "num_attention_heads": 6,
    "attention_head_dim": 64,
    "patch_size": 1,
    "in_channels": 64,
    "num_layers": 2,
    "num_single_layers": 4,
    "joint_attention_dim": 256,
    "pooled_projection_dim": 128,
    "guidance_embeds": True,
    "axes_dims_rope": (16, 24, 24),
}
_BERT: Mapping[str, Any] = {
    "vocab_size": 4096,
    "hidden_size": 512,
    "num_hidden_layers": 8,
    "num_attention_heads": 8,
    "intermediate_size": 2048,
    "max_position_embeddings": 512,
}
_MODERN_BERT: Mapping[str, Any] = {
    "vocab_size": 4096,
    "hidden_size": 512,
    "num_hidden_layers": 8,
    "num_attention_heads": 8,
    "intermediate_size": 768,
    "max_position_embeddings": 512,
    "pad_token_id": 0,
}

_TEXT = Sizes(text=77)
_LM = Sizes(tokens=512)


def _torch(model: str, configuration: Mapping[str, Any], sizes: Sizes = _TEXT, **more: str) -> TorchSource:
    return TorchSource(model, configuration, sizes, more.get("part"), more.get("text", "recompute"))


def _flux(configuration: Mapping[str, Any]) -> TorchSource:
    sizes = Sizes(text=77, height=_LATENTS, width=_LATENTS)
    return _torch("diffusers.FluxTransformer2DModel", configuration, sizes, text="frozen")


FAMILIES = MappingProxyType(
    {
        family.name: family
        for family in (
            Family("unet2d", "UNet2DModel (DDPM)", _torch("diffusers.UNet2DModel", _DDPM)),
            Family("sd15", "UNet2DConditionModel, SD 1.5", _torch(_UNET, _SD15)),
            Family("sd21", "UNet2DConditionModel, SD 2.1", _torch(_UNET, _SD21)),
            Family("sdxl", "UNet2DConditionModel, SDXL", _torch(_UNET, _SDXL)),
            Family("inpainting", "SD 1.5, 9 channels (inpainting)", _torch(_UNET, {**_SD15, "in_channels": 9})),
            Family("controlnet", "SD 1.5, ControlNet residuals", _torch(_UNET, _SD15, part="controlled")),
            Family(
                "vae_encoder",
                "AutoencoderKL, encoder",
                _torch("diffusers.AutoencoderKL", _AUTOENCODER, part="encoder"),
            ),
            Family(
                "vae_decoder",
                "AutoencoderKL, decoder",
                _torch("diffusers.AutoencoderKL", _AUTOENCODER, part="decoder"),
            ),
            Family("dit", "DiT", _torch("diffusers.DiTTransformer2DModel", _DIT)),
            Family(
                "pixart_alpha",
                "PixArt-alpha",
                _torch(
                    "diffusers.PixArtTransformer2DModel",
                    {**_PIXART, "use_additional_conditions": True},
                    Sizes(text=120),
                ),
            ),
            Family(
                "pixart_sigma",
                "PixArt-Sigma",
                _torch(
                    "diffusers.PixArtTransformer2DModel",
                    {**_PIXART, "use_additional_conditions": False},
                    Sizes(text=300),
                ),
            ),
            Family("sd3", "SD 3, text frozen", _torch("diffusers.SD3Transformer2DModel", _SD3, text="frozen")),
            Family("sd35", "SD 3.5, text frozen", _torch("diffusers.SD3Transformer2DModel", _SD35, text="frozen")),
            Family("sd3_recompute", "SD 3, text recomputed", _torch("diffusers.SD3Transformer2DModel", _SD3)),
            Family("flux", "FLUX, text frozen", _flux(_FLUX)),
            Family("masked_lm", "masked LM (BERT)", _torch("transformers.BertForMaskedLM", _BERT, _LM)),
            Family(
                "modern_bert", "masked LM (ModernBERT)", _torch("transformers.ModernBertForMaskedLM", _MODERN_BERT, _LM)
            ),
            Family("lm", "plain LM (LLaDA-like)", ReferenceSource("llada_512")),
            Family(
                "sd_unet_77m_64",
                "SD-like UNet, 77 M parameters, 64x64 latents",
                ReferenceSource("sd_unet_77m_64"),
                MappingProxyType({0.02: 0.048, 0.05: 0.082, 0.1: 0.135, 0.25: 0.28}),
            ),
            Family(
                "flux_1024",
                "FLUX-like, 1,024 + 77 tokens, text frozen",
                _flux({**_FLUX, "num_layers": 4, "num_single_layers": 8}),
                MappingProxyType({0.02: 0.045, 0.05: 0.075, 0.1: 0.125, 0.25: 0.27}),
            ),
        )
    }
)
"""Every family under its name."""


def family(name: str) -> Family:
    """The family of that name.

    Raises:
        ModelError: there is none.
    """
    if name not in FAMILIES:
        raise ModelError(f"Expected the name of a family, got {name!r}. Choose of: {', '.join(FAMILIES)}.")
    return FAMILIES[name]
