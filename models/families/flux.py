"""FLUX.1: joint attention of packed latents and text, positions by rotary embedding."""

from __future__ import annotations

from retouch.models._adapter import Adapter, named
from retouch.models._input import Config, Input, Sizes, condition, editable, step

__all__ = ["FLUX"]

_TEXT_TOKENS = 512
_SIZE = 128
"""Latents of an image of 1,024 x 1,024 pixels; two by two of them are packed into one token."""


def _inputs(config: Config, sizes: Sizes) -> tuple[Input, ...]:
    batch, text, (height, width) = sizes.batch, sizes.text or _TEXT_TOKENS, sizes.image(_SIZE)
    tokens = sizes.tokens or (height // 2) * (width // 2)
    coordinates = len(config["axes_dims_rope"])
    return (
        editable("hidden_states", (batch, tokens, config["in_channels"]), (1,)),
        step("timestep", (batch,), 0.5),
        condition("encoder_hidden_states", (batch, text, config["joint_attention_dim"])),
        condition("pooled_projections", (batch, config["pooled_projection_dim"])),
        condition("img_ids", (tokens, coordinates), below=height // 2),
        condition("txt_ids", (text, coordinates), fill=0),
        *((condition("guidance", (batch,), fill=3.5),) if config["guidance_embeds"] else ()),
    )


FLUX = Adapter("flux", ("diffusers.FluxTransformer2DModel",), _inputs, named("out_hidden_states"), multiple=lambda _: 2)
