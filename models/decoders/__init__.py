"""Adapters for block-diffusion language models, and their export."""

from __future__ import annotations

__all__ = [
    # Exports
    "export_language_model",
    "is_language_model",
    # Adapters
    "DECODERS",
    "DecoderAdapter",
    "decoder_for",
]

from retouch.models.decoders._adapter import DecoderAdapter
from retouch.models.decoders._catalogue import DECODERS, decoder_for
from retouch.models.decoders._export import export_language_model, is_language_model
