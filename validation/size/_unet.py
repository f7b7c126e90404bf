"""The UNet whose export is measured: Stable Diffusion 1.5's architecture with random weights, as saved by diffusers."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from retouch.errors import ModelError

STABLE_DIFFUSION = {"sample_size": 64, "cross_attention_dim": 768, "attention_head_dim": 8}
"""The default configuration with the text width of Stable Diffusion 1.5: 860 million parameters."""

SMALL = {
    **STABLE_DIFFUSION,
    "sample_size": 16,
    "cross_attention_dim": 32,
    "block_out_channels": (32, 64, 64, 64),
    "layers_per_block": 1,
}
"""The same in small, to try the command with."""


def save_unet(directory: Path, *, small: bool) -> None:
    """Saves the UNet.

    Raises:
        ModelError: torch or diffusers is not installed.
    """
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    try:
        import diffusers
        import torch
    except ModuleNotFoundError as error:
        raise ModelError(f'This needs {error.name}, which is not installed: pip install "retouch[models]"') from error
    from retouch.validation.reference_models._weights import draw_weights

    torch.manual_seed(0)
    kind: Any = diffusers.UNet2DConditionModel
    module = kind(**(SMALL if small else STABLE_DIFFUSION))
    draw_weights(module)
    module.save_pretrained(directory)
