"""The autoencoder of latent diffusion models; encoder and decoder are exported on their own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from retouch.models._adapter import Adapter, Outputs
from retouch.models._input import Config, Input, Sizes, editable

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module

__all__ = ["DECODER", "ENCODER"]

_MODELS = ("diffusers.AutoencoderKL",)


def _image(config: Config, sizes: Sizes) -> tuple[Input, ...]:
    size = sizes.image(config.get("sample_size"))
    return (editable("sample", (sizes.batch, config["in_channels"], *size), (2, 3)),)


def _latents(config: Config, sizes: Sizes) -> tuple[Input, ...]:
    factor = 2 ** (len(config["block_out_channels"]) - 1)
    size = config.get("sample_size")
    default = None if size is None else [s // factor for s in ((size, size) if isinstance(size, int) else size)]
    shape = (sizes.batch, config["latent_channels"], *sizes.image(default))
    return (editable("latent_sample", shape, (2, 3)),)


def _encode(module: Module, *, sample: Tensor) -> Outputs:
    return {"latent_parameters": module.encode(sample, return_dict=False)[0].parameters}  # type: ignore[operator]


def _decode(module: Module, *, latent_sample: Tensor) -> Outputs:
    return {"sample": module.decode(latent_sample, return_dict=False)[0]}  # type: ignore[operator]


ENCODER = Adapter("autoencoder_kl", _MODELS, _image, _encode, part="encoder", folder="vae_encoder")
DECODER = Adapter("autoencoder_kl", _MODELS, _latents, _decode, part="decoder", folder="vae_decoder")
