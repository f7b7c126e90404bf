"""Unconditional convolutional UNets, as in DDPM."""

from __future__ import annotations

from retouch.models._adapter import Adapter, named
from retouch.models._input import Config, Input, Sizes, editable, image_size, step

__all__ = ["UNET2D"]


def _inputs(config: Config, sizes: Sizes) -> tuple[Input, ...]:
    shape = (sizes.batch, config["in_channels"], *image_size(config, sizes))
    return editable("sample", shape, (2, 3)), step("timestep", (1,), 500, dtype="int64")


def _multiple(config: Config) -> int:
    """Every level but the last halves the image, and the way back only doubles."""
    return 1 << (len(config["block_out_channels"]) - 1)


UNET2D = Adapter("unet2d", ("diffusers.UNet2DModel",), _inputs, named("out_sample"), multiple=_multiple)
