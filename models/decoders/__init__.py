"""Adapters for diffusion language models, and their export."""

from __future__ import annotations

__all__ = [
    # Exports
    "export_language_model",
    "export_text_edits",
    "is_language_model",
    # Adapters
    "DECODERS",
    "DecoderAdapter",
    "decoder_for",
]

from retouch.models.decoders._adapter import DecoderAdapter
from retouch.models.decoders._catalogue import DECODERS, decoder_for
from retouch.models.decoders._export import export_language_model, export_text_edits, is_language_model
