"""ControlNet: a copy of a UNet's way down that looks at a conditioning image, and gives what the UNet adds.

The outputs are named like the inputs of ``UNet2DConditionModel`` exported with ``part="controlled"``.

Regions are positions of the latents. The conditioning image is a condition: its embedding is computed in full when the
image changes, once for all steps, and an edit sees the new one at its rows. With ``controlnet_cond`` as the editable
input, regions are pixels of that image, and the latents are the condition.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from retouch.models._adapter import Adapter, Outputs
from retouch.models._input import Config, Input, Sizes, condition, image_size
from retouch.models.families.unet2d_condition import plain_inputs

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module

__all__ = ["CONTROLNET"]


def _inputs(config: Config, sizes: Sizes) -> tuple[Input, ...]:
    height, width = image_size(config, sizes)
    factor = 2 ** (len(config["conditioning_embedding_out_channels"]) - 1)
    shape = (sizes.batch, config["conditioning_channels"], height * factor, width * factor)
    return (
        *plain_inputs(config, sizes),
        condition("controlnet_cond", shape),
        condition("conditioning_scale", (), fill=1),
    )


def _call(module: Module, **arguments: Tensor) -> Outputs:
    down, middle = module(**arguments, return_dict=False)
    return {**{f"down_residual_{i}": residual for i, residual in enumerate(down)}, "mid_residual": middle}


CONTROLNET = Adapter("controlnet", ("diffusers.ControlNetModel",), _inputs, _call)
