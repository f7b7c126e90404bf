"""UNets with cross-attention to text: Stable Diffusion 1.x and 2.x, SDXL, their inpainting variants, ControlNet."""

from __future__ import annotations

from retouch.models._adapter import Adapter, named
from retouch.models._input import Config, Input, Sizes, condition, editable, image_size, step

__all__ = ["UNET2D_CONDITION", "UNET2D_CONTROLLED", "plain_inputs"]

_MODELS = ("diffusers.UNet2DConditionModel",)
_TEXT_TOKENS = 77
_TIME_IDS = 6


def plain_inputs(config: Config, sizes: Sizes) -> tuple[Input, ...]:
    """Latents, step and text, which a ControlNet has too."""
    sample = (sizes.batch, config["in_channels"], *image_size(config, sizes))
    text = (sizes.batch, sizes.text or _TEXT_TOKENS, config["cross_attention_dim"])
    return (
        editable("sample", sample, (2, 3)),
        step("timestep", (1,), 500, dtype="int64"),
        condition("encoder_hidden_states", text),
        *(_added(config, sizes) if config.get("addition_embed_type") == "text_time" else ()),
    )


def _added(config: Config, sizes: Sizes) -> tuple[Input, ...]:
    """SDXL's pooled text, and the original size, crop and target size of the image."""
    width = config["projection_class_embeddings_input_dim"] - _TIME_IDS * config["addition_time_embed_dim"]
    return (
        condition("text_embeds", (sizes.batch, width), argument="added_cond_kwargs.text_embeds"),
        condition("time_ids", (sizes.batch, _TIME_IDS), fill=512, argument="added_cond_kwargs.time_ids"),
    )


def _controlled(config: Config, sizes: Sizes) -> tuple[Input, ...]:
    """What a ControlNet adds to every skip connection and to the middle: images at the UNet's own resolutions."""
    channels, (height, width) = config["block_out_channels"], image_size(config, sizes)
    skips = [(channels[0], height, width)]
    for level, count in enumerate(channels):
        skips += [(count, height, width)] * config["layers_per_block"]
        if level < len(channels) - 1:
            height, width = (height + 1) // 2, (width + 1) // 2
            skips.append((count, height, width))
    return (
        *plain_inputs(config, sizes),
        *(
            condition(f"down_residual_{i}", (sizes.batch, *skip), argument=f"down_block_additional_residuals.{i}")
            for i, skip in enumerate(skips)
        ),
        condition("mid_residual", (sizes.batch, *skips[-1]), argument="mid_block_additional_residual"),
    )


UNET2D_CONDITION = Adapter("unet2d_condition", _MODELS, plain_inputs, named("out_sample"))
UNET2D_CONTROLLED = Adapter("unet2d_condition", _MODELS, _controlled, named("out_sample"), part="controlled")
