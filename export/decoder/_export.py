"""From weights to a text bundle, verified before it is in place."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial

import onnx_ir as ir

from retouch import __version__
from retouch.bundle import TEXT_SCHEMA_VERSION, DecoderSpec, SymbolsSpec, TextBundle, TextBundleWriter, TextManifest
from retouch.export.decoder._checks import check_graphs
from retouch.export.decoder._graph import decoder_graph
from retouch.export.decoder._rows_graph import RowsKind, rows_graph
from retouch.export.decoder._stored import StoredWeights
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
        for name, build in _graphs(spec, StoredWeights(weights)).items():
            say(f"build {name}.onnx")
            model = build()
            file.externalise(model)
            ir.save(model, writer.path / f"{name}.onnx")
        say("compare with the reference")
        errors = check_graphs(spec, weights, writer.path)
        return writer.finish(TextManifest(TEXT_SCHEMA_VERSION, __version__, spec, tokenizer, errors, {}))


def _graphs(spec: DecoderSpec, weights: StoredWeights) -> dict[str, Callable[[], ir.Model]]:
    """How the bundle's graphs are built, by their names."""
    graphs: dict[str, Callable[[], ir.Model]] = {"full": partial(decoder_graph, spec, weights, cached=False)}
    if spec.block_causal:
        graphs["decode"] = partial(decoder_graph, spec, weights, cached=True)
    return graphs | {kind.value: partial(rows_graph, spec, weights, kind) for kind in RowsKind}
