"""From weights to a text bundle, verified before it is in place."""

from __future__ import annotations

import os
from collections.abc import Callable

import onnx_ir as ir

from retouch import __version__
from retouch.bundle import TEXT_SCHEMA_VERSION, DecoderSpec, SymbolsSpec, TextBundle, TextBundleWriter, TextManifest
from retouch.export.decoder._checks import check_graphs
from retouch.export.decoder._graph import decoder_graph
from retouch.export.decoder._weights import DecoderWeights
from retouch.export.weights import WeightsFile

__all__ = ["export_decoder"]


def export_decoder(
    spec: DecoderSpec,
    weights: DecoderWeights,
    output: str | os.PathLike[str],
    *,
    tokenizer: SymbolsSpec | None = None,
    tell: Callable[[str], None] | None = None,
) -> TextBundle:
    """The text bundle of a model, written to a directory only if it passes verification.

    Args:
        spec: the model's shape.
        weights: its weights.
        output: directory to write; a text bundle that is there is replaced.
        tokenizer: the symbols of its tokenizer.
        tell: called with one line before every step.

    Raises:
        ModelError: a weight does not have the shape that the configuration gives it.
        VerificationError: a graph differs from the reference.
    """
    say = tell or (lambda _: None)
    with TextBundleWriter(output) as writer:
        file = WeightsFile(writer.path / "weights.bin")
        for name, cached in (("decode", True), ("full", False)):
            say(f"build {name}.onnx")
            model = decoder_graph(spec, weights, cached=cached)
            file.externalise(model)
            ir.save(model, writer.path / f"{name}.onnx")
        say("compare with the reference")
        errors = check_graphs(spec, weights, writer.path)
        return writer.finish(TextManifest(TEXT_SCHEMA_VERSION, __version__, spec, tokenizer, errors, {}))
