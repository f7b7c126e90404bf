"""The diffusers architectures of the catalogue; the one module that imports diffusers."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import cast

# The models are made from configurations: diffusers must not look for anything on the network.
os.environ.setdefault("HF_HUB_OFFLINE", "1")

import torch
from diffusers import DiTTransformer2DModel, UNet2DConditionModel, UNet2DModel
from torch import Tensor, nn

from retouch.validation.reference_models._model import BuiltModel, Configuration

TIMESTEP = 500
CLASS_LABEL = 7
TEXT_TOKENS = 77


class ByPosition(nn.Module):
    """A diffusers model called with positional inputs, returning its tensor instead of an output object."""

    def __init__(self, model: nn.Module, parameters: Iterable[str]) -> None:
        super().__init__()
        self.model = model
        self.parameter_names = tuple(parameters)

    def forward(self, *inputs: Tensor) -> Tensor:
        """The model's prediction."""
        named = dict(zip(self.parameter_names, inputs, strict=True))
        return cast("Tensor", self.model(**named, return_dict=False)[0])


def unet2d(configuration: Configuration) -> BuiltModel:
    """An unconditional convolutional UNet; inputs ``x`` [1, C, H, W] and ``t`` [1]."""
    module = ByPosition(_from_configuration(UNet2DModel, configuration), ["sample", "timestep"])
    return BuiltModel(module, {"x": _latents(configuration), "t": torch.tensor([TIMESTEP])})


def unet2d_condition(configuration: Configuration) -> BuiltModel:
    """A UNet with cross-attention to text; inputs ``x`` [1, C, H, W], ``t`` [1] and ``c`` [1, text tokens, width]."""
    model = _from_configuration(UNet2DConditionModel, configuration)
    module = ByPosition(model, ["sample", "timestep", "encoder_hidden_states"])
    text = torch.randn(1, TEXT_TOKENS, _integer(configuration, "cross_attention_dim"))
    return BuiltModel(module, {"x": _latents(configuration), "t": torch.tensor([TIMESTEP]), "c": text})


def dit(configuration: Configuration) -> BuiltModel:
    """A class-conditional diffusion transformer; inputs ``x`` [1, C, H, W], ``t`` [1] and ``y`` [1]."""
    model = _from_configuration(DiTTransformer2DModel, configuration)
    module = ByPosition(model, ["hidden_states", "timestep", "class_labels"])
    conditions = {"t": torch.tensor([TIMESTEP]), "y": torch.tensor([CLASS_LABEL])}
    return BuiltModel(module, {"x": _latents(configuration), **conditions})


def _from_configuration(model_class: Callable[..., object], configuration: Configuration) -> nn.Module:
    """The model; diffusers' constructors are untyped, so the claim that it is a module is made here."""
    return cast("nn.Module", model_class(**configuration))


def _latents(configuration: Configuration) -> Tensor:
    size = _integer(configuration, "sample_size")
    return torch.randn(1, _integer(configuration, "in_channels"), size, size)


def _integer(configuration: Configuration, key: str) -> int:
    return cast("int", configuration[key])
