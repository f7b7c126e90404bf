"""Exports of block-diffusion language models: a graph with keys and values in place, and one without caches."""

from __future__ import annotations

__all__ = ["DecoderWeights", "decoder_graph", "export_decoder", "reference_logits"]

from retouch.export.decoder._export import export_decoder
from retouch.export.decoder._graph import decoder_graph
from retouch.export.decoder._reference import reference_logits
from retouch.export.decoder._weights import DecoderWeights
