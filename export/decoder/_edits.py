"""From weights to a bundle of edits: texts of one length, of which some tokens change."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import onnx_ir as ir

from retouch.bundle import Bundle, DecoderSpec
from retouch.errors import ModelError
from retouch.export.decoder._graph import plain_graph
from retouch.export.decoder._stored import StoredWeights
from retouch.export.decoder._weights import DecoderWeights
from retouch.export.pipeline import ExportOptions, export_onnx
from retouch.export.weights import WeightsFile

__all__ = ["export_decoder_edits"]


def export_decoder_edits(
    spec: DecoderSpec,
    weights: DecoderWeights,
    output: str | os.PathLike[str],
    tokens: int,
    *,
    tell: Callable[[str], None] | None = None,
) -> Bundle:
    """The bundle of a model with full attention for texts of one length, written only if it passes verification.

    Args:
        spec: the model's shape.
        weights: its weights.
        output: directory to write; a bundle that is there is replaced.
        tokens: tokens of a text.
        tell: called with one line before every step.

    Raises:
        ModelError: the model has experts, or the text is too long for it.
        VerificationError: the bundle does not give what the model gives.
    """
    if spec.experts is not None:
        raise ModelError("Expected a model without experts: they are chosen by a loop, which no rule puts on rows.")
    if not 0 < tokens <= spec.positions:
        raise ModelError(f"Expected 1 to {spec.positions} tokens, got {tokens}.")
    with tempfile.TemporaryDirectory() as folder:
        model = plain_graph(spec, StoredWeights(weights), tokens)
        WeightsFile(Path(folder) / "weights.bin").externalise(model)
        ir.save(model, Path(folder) / "model.onnx")
        return export_onnx(Path(folder) / "model.onnx", output, ExportOptions(editable="ids", axes=(1,)), tell=tell)
