"""SANA: linear attention among the latents, ordinary attention to text, convolutions in the feed-forward part."""

from __future__ import annotations

from retouch.models._adapter import Adapter, named
from retouch.models._input import Config, Input, Sizes, condition, editable, image_size, step

__all__ = ["SANA"]

_TEXT_TOKENS = 300


def _inputs(config: Config, sizes: Sizes) -> tuple[Input, ...]:
    batch, text, (height, width) = sizes.batch, sizes.text or _TEXT_TOKENS, image_size(config, sizes)
    guided = (condition("guidance", (batch,), fill=4.5),) if config["guidance_embeds"] else ()
    return (
        editable("hidden_states", (batch, config["in_channels"], height, width), (2, 3)),
        condition("encoder_hidden_states", (batch, text, config["caption_channels"])),
        step("timestep", (batch,), 500, dtype="int64"),
        *guided,
        condition("encoder_attention_mask", (batch, text), fill=1),
    )


SANA = Adapter("sana", ("diffusers.SanaTransformer2DModel",), _inputs, named("out_hidden_states"))
