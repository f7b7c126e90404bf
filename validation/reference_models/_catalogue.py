"""The catalogue of reference models: plain data, so that it can be read without torch."""

from __future__ import annotations

from types import MappingProxyType

from retouch.errors import ModelError
from retouch.validation.reference_models._model import BuiltModel, Configuration, ReferenceModel


def _unet2d(configuration: Configuration) -> BuiltModel:
    from retouch.validation.reference_models import _diffusion_families

    return _diffusion_families.unet2d(configuration)


def _unet2d_condition(configuration: Configuration) -> BuiltModel:
    from retouch.validation.reference_models import _diffusion_families

    return _diffusion_families.unet2d_condition(configuration)


def _dit(configuration: Configuration) -> BuiltModel:
    from retouch.validation.reference_models import _diffusion_families

    return _diffusion_families.dit(configuration)


def _llada(configuration: Configuration) -> BuiltModel:
    from retouch.validation.reference_models import _llada as module

    return module.llada(configuration)


def _ddpm_unet(size: int) -> Configuration:
    """The DDPM-style UNet: four levels, attention at a quarter of the input's resolution and in the middle."""
    return {
        "sample_size": size,
        "in_channels": 3,
        "out_channels": 3,
        "block_out_channels": (128, 128, 256, 256),
        "layers_per_block": 2,
        "down_block_types": ("DownBlock2D", "DownBlock2D", "AttnDownBlock2D", "DownBlock2D"),
        "up_block_types": ("UpBlock2D", "AttnUpBlock2D", "UpBlock2D", "UpBlock2D"),
    }


def _ddpm_unet_tiny() -> Configuration:
    """Two levels; the only attention is the one in the middle, at 8x8."""
    return {
        "sample_size": 16,
        "in_channels": 3,
        "out_channels": 3,
        "block_out_channels": (32, 32),
        "layers_per_block": 1,
        "norm_num_groups": 8,
        "down_block_types": ("DownBlock2D", "DownBlock2D"),
        "up_block_types": ("UpBlock2D", "UpBlock2D"),
    }


def _ddpm_unet_256() -> Configuration:
    """The 113.7 M parameter UNet of DDPM at 256x256: six levels, one attention head at 16x16 and in the middle."""
    return {
        "sample_size": 256,
        "in_channels": 3,
        "out_channels": 3,
        "block_out_channels": (128, 128, 256, 256, 512, 512),
        "layers_per_block": 2,
        "attention_head_dim": None,
        "downsample_padding": 0,
        "norm_eps": 1e-6,
        "flip_sin_to_cos": False,
        "freq_shift": 1,
        "down_block_types": (*("DownBlock2D",) * 4, "AttnDownBlock2D", "DownBlock2D"),
        "up_block_types": ("UpBlock2D", "AttnUpBlock2D", *("UpBlock2D",) * 4),
    }


def _dit_of(size: int, layers: int, heads: int, head_width: int) -> Configuration:
    """A DiT over latents of ``size`` squared, cut into patches of 2x2."""
    return {
        "sample_size": size,
        "patch_size": 2,
        "in_channels": 4,
        "out_channels": 4,
        "num_layers": layers,
        "num_attention_heads": heads,
        "attention_head_dim": head_width,
        "num_embeds_ada_norm": 1000,
        "norm_num_groups": 32,
    }


def _sd_unet(size: int, channels: tuple[int, ...] = (128, 256, 512, 512)) -> Configuration:
    """The Stable-Diffusion-style UNet at reduced width: four levels, cross-attention on the first three."""
    return {
        "sample_size": size,
        "in_channels": 4,
        "out_channels": 4,
        "block_out_channels": channels,
        "cross_attention_dim": 256,
        "attention_head_dim": 8,
    }


def _unet2d_condition_tiny() -> Configuration:
    return {
        "sample_size": 16,
        "in_channels": 4,
        "out_channels": 4,
        "block_out_channels": (32, 64),
        "layers_per_block": 1,
        "norm_num_groups": 8,
        "cross_attention_dim": 32,
        "attention_head_dim": 4,
        "down_block_types": ("CrossAttnDownBlock2D", "DownBlock2D"),
        "up_block_types": ("UpBlock2D", "CrossAttnUpBlock2D"),
    }


def _llada_512() -> Configuration:
    return {"vocabulary": 4096, "width": 512, "hidden": 1408, "heads": 8, "layers": 8, "tokens": 512}


def _llada_tiny() -> Configuration:
    return {"vocabulary": 128, "width": 64, "hidden": 176, "heads": 4, "layers": 2, "tokens": 64}


IMAGE = ("x", (2, 3))
TOKENS = ("ids", (1,))

REFERENCE_MODELS = MappingProxyType(
    {
        model.name: model
        for model in (
            ReferenceModel("ddpm_unet_tiny", *IMAGE, _ddpm_unet_tiny(), _unet2d),
            ReferenceModel("ddpm_unet_32", *IMAGE, _ddpm_unet(32), _unet2d),
            ReferenceModel("ddpm_unet_64", *IMAGE, _ddpm_unet(64), _unet2d),
            ReferenceModel("dit_tiny", *IMAGE, _dit_of(16, layers=2, heads=2, head_width=32), _dit),
            ReferenceModel("dit_256", *IMAGE, _dit_of(32, layers=12, heads=6, head_width=64), _dit),
            ReferenceModel("dit_1024", *IMAGE, _dit_of(64, layers=12, heads=6, head_width=64), _dit),
            ReferenceModel("llada_tiny", *TOKENS, _llada_tiny(), _llada),
            ReferenceModel("llada_512", *TOKENS, _llada_512(), _llada),
            ReferenceModel("unet2d_condition_tiny", *IMAGE, _unet2d_condition_tiny(), _unet2d_condition),
            ReferenceModel("sd_unet_64", *IMAGE, _sd_unet(64), _unet2d_condition),
            ReferenceModel("ddpm_unet_256", *IMAGE, _ddpm_unet_256(), _unet2d),
            ReferenceModel("sd_unet_77m_64", *IMAGE, _sd_unet(64, (96, 192, 384, 384)), _unet2d_condition),
        )
    }
)
"""Every reference model under its name."""

BENCHMARK_MODELS = frozenset({"ddpm_unet_256", "sd_unet_77m_64"})
"""Names of those that take too long for tests and only serve benchmarks."""


def reference_model(name: str) -> ReferenceModel:
    """The reference model of that name.

    Raises:
        ModelError: there is none.
    """
    if name not in REFERENCE_MODELS:
        known = ", ".join(REFERENCE_MODELS)
        raise ModelError(f"expected the name of a reference model, got {name!r}; choose one of: {known}")
    return REFERENCE_MODELS[name]
