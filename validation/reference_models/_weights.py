"""Reproducible weights in which no branch of a model is switched off."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from retouch.validation.reference_models._model import BuiltModel

if TYPE_CHECKING:
    from retouch.validation.reference_models._model import ReferenceModel

SEED = 0


def build_seeded(model: ReferenceModel) -> BuiltModel:
    """The model built with fixed seed and drawn weights; the global random state is left as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(SEED)
        built = model.builder(model.configuration)
        draw_weights(built.module)
    return BuiltModel(built.module.eval(), built.inputs)


@torch.no_grad()
def draw_weights(module: torch.nn.Module) -> None:
    """Draws every parameter anew.

    Diffusion models start with output projections and modulations of zero: as constructed, whole branches
    have no effect and a wrong rewrite of them would go unnoticed. Matrices keep the variance of their
    input; biases and the gains of norms get small deviations from 0 and 1.
    """
    for name, parameter in module.named_parameters():
        if parameter.dim() > 1:
            parameter.normal_(std=parameter[0].numel() ** -0.5)
        elif name.endswith("bias"):
            parameter.normal_(std=0.02)
        else:
            parameter.normal_(mean=1.0, std=0.1)
