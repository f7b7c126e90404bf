"""Class-conditional diffusion transformers."""

from __future__ import annotations

from retouch.models._adapter import Adapter, named
from retouch.models._input import Config, Input, Sizes, condition, editable, image_size, patch_size, step

__all__ = ["DIT"]


def _inputs(config: Config, sizes: Sizes) -> tuple[Input, ...]:
    shape = (sizes.batch, config["in_channels"], *image_size(config, sizes))
    return (
        editable("hidden_states", shape, (2, 3)),
        step("timestep", (sizes.batch,), 500, dtype="int64"),
        condition("class_labels", (sizes.batch,), dtype="int64", below=config["num_embeds_ada_norm"]),
    )


DIT = Adapter("dit", ("diffusers.DiTTransformer2DModel",), _inputs, named("out_hidden_states"), multiple=patch_size)
