"""Stable Diffusion 3 and 3.5: joint attention of image and text tokens."""

from __future__ import annotations

from retouch.models._adapter import Adapter, named
from retouch.models._input import Config, Input, Sizes, condition, editable, image_size, patch_size, step

__all__ = ["SD3"]

_TEXT_TOKENS = 333
"""77 of the CLIP encoders and 256 of T5."""


def _inputs(config: Config, sizes: Sizes) -> tuple[Input, ...]:
    batch = sizes.batch
    return (
        editable("hidden_states", (batch, config["in_channels"], *image_size(config, sizes)), (2, 3)),
        step("timestep", (batch,), 500),
        condition("encoder_hidden_states", (batch, sizes.text or _TEXT_TOKENS, config["joint_attention_dim"])),
        condition("pooled_projections", (batch, config["pooled_projection_dim"])),
    )


SD3 = Adapter("sd3", ("diffusers.SD3Transformer2DModel",), _inputs, named("out_hidden_states"), multiple=patch_size)
