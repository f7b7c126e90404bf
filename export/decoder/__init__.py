"""Exports of diffusion language models: graphs with states in place, one without caches, and bundles of edits."""

from __future__ import annotations

__all__ = ["DecoderWeights", "export_decoder", "export_decoder_edits", "reference_logits"]

from retouch.export.decoder._edits import export_decoder_edits
from retouch.export.decoder._export import export_decoder
from retouch.export.decoder._reference import reference_logits
from retouch.export.decoder._weights import DecoderWeights
