"""PixArt-alpha and PixArt-Sigma: diffusion transformers with cross-attention to text."""

from __future__ import annotations

from retouch.models._adapter import Adapter, named
from retouch.models._input import Config, Input, Sizes, condition, editable, image_size, patch_size, step

__all__ = ["PIXART"]

_TEXT_TOKENS = 120
_UNUSED = {"added_cond_kwargs.resolution": None, "added_cond_kwargs.aspect_ratio": None}
_PIXELS = 8


def _inputs(config: Config, sizes: Sizes) -> tuple[Input, ...]:
    batch, text, (height, width) = sizes.batch, sizes.text or _TEXT_TOKENS, image_size(config, sizes)
    additional = config.get("use_additional_conditions")
    # As the class does: models for 1024 pixels were trained with these conditions.
    added = config["sample_size"] == 128 if additional is None else additional
    return (
        editable("hidden_states", (batch, config["in_channels"], height, width), (2, 3)),
        step("timestep", (batch,), 500, dtype="int64"),
        condition("encoder_hidden_states", (batch, text, config["caption_channels"])),
        condition("encoder_attention_mask", (batch, text), fill=1),
        *(_added(batch, height, width) if added else ()),
    )


def _added(batch: int, height: int, width: int) -> tuple[Input, ...]:
    return (
        condition("resolution", (batch, 2), fill=height * _PIXELS, argument="added_cond_kwargs.resolution"),
        condition("aspect_ratio", (batch, 1), fill=height / width, argument="added_cond_kwargs.aspect_ratio"),
    )


PIXART = Adapter(
    "pixart", ("diffusers.PixArtTransformer2DModel",), _inputs, named("out_hidden_states"), _UNUSED, multiple=patch_size
)
