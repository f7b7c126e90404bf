"""The adapters of language models."""

from __future__ import annotations

from retouch.errors import ModelError
from retouch.models.decoders._adapter import DecoderAdapter
from retouch.models.decoders.code_lm import CODE_LM
from retouch.models.decoders.dream import DREAM
from retouch.models.decoders.llada import LLADA
from retouch.models.decoders.llada2_moe import LLADA2_MOE

__all__ = ["DECODERS", "decoder_for"]

DECODERS: tuple[DecoderAdapter, ...] = (CODE_LM, LLADA2_MOE, LLADA, DREAM)
"""Every adapter."""


def decoder_for(model_type: object) -> DecoderAdapter:
    """The adapter for models of a type.

    Raises:
        ModelError: there is none.
    """
    for adapter in DECODERS:
        if adapter.model_type == model_type:
            return adapter
    known = ", ".join(adapter.model_type for adapter in DECODERS)
    raise ModelError(
        f"There is no adapter for language models of type {model_type!r}; there are some for {known}. Write one "
        "(models/README.md) and pass it as adapter=..."
    )
