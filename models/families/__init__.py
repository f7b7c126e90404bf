"""One file per model family, each with the adapters of its classes; ``ADAPTERS`` lists them all."""

from __future__ import annotations

__all__ = ["ADAPTERS"]

from retouch.models._adapter import Adapter
from retouch.models.families.autoencoder_kl import DECODER, ENCODER
from retouch.models.families.controlnet import CONTROLNET
from retouch.models.families.dit import DIT
from retouch.models.families.flux import FLUX
from retouch.models.families.masked_lm import MASKED_LM, MASKED_LM_OFFSET
from retouch.models.families.pixart import PIXART
from retouch.models.families.sana import SANA
from retouch.models.families.sd3 import SD3
from retouch.models.families.text_encoder import CLIP_TEXT, CLIP_TEXT_PROJECTED, T5_ENCODER
from retouch.models.families.unet2d import UNET2D
from retouch.models.families.unet2d_condition import UNET2D_CONDITION, UNET2D_CONTROLLED

ADAPTERS: tuple[Adapter, ...] = (
    UNET2D,
    UNET2D_CONDITION,
    UNET2D_CONTROLLED,
    CONTROLNET,
    ENCODER,
    DECODER,
    DIT,
    PIXART,
    SANA,
    SD3,
    FLUX,
    MASKED_LM,
    MASKED_LM_OFFSET,
    CLIP_TEXT,
    CLIP_TEXT_PROJECTED,
    T5_ENCODER,
)
"""Every adapter."""
