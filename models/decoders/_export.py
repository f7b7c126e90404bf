"""From the directory of a language model to a text bundle. Needs no torch."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from retouch.bundle import Bundle, DecoderSpec, SymbolsSpec, TextBundle
from retouch.errors import ModelError
from retouch.export.decoder import DecoderWeights, export_decoder, export_decoder_edits
from retouch.models._load import CONFIG, read_json
from retouch.models.decoders._adapter import DecoderAdapter
from retouch.models.decoders._catalogue import DECODERS, decoder_for
from retouch.models.decoders._checkpoint import Checkpoint

__all__ = ["export_language_model", "export_text_edits", "is_language_model"]

_TOKENIZER = "tokenizer.json"


def export_language_model(
    directory: str | os.PathLike[str],
    output: str | os.PathLike[str],
    *,
    adapter: DecoderAdapter | None = None,
    tell: Callable[[str], None] | None = None,
) -> TextBundle:
    """The text bundle of a diffusion language model, written only if it passes verification.

    Args:
        directory: ``config.json``, safetensors, and perhaps ``tokenizer.json``.
        output: directory to write; a text bundle that is there is replaced.
        adapter: how the model is exported; ``None`` means by its ``model_type``.
        tell: called with one line before every step.

    Raises:
        ModelError: there is no adapter for the model, or it cannot be read.
        VerificationError: a graph differs from the reference.
    """
    spec, weights = _opened(Path(directory), adapter)
    return export_decoder(spec, weights, output, tokenizer=_symbols(Path(directory), spec), tell=tell)


def export_text_edits(
    directory: str | os.PathLike[str],
    output: str | os.PathLike[str],
    tokens: int,
    *,
    adapter: DecoderAdapter | None = None,
    tell: Callable[[str], None] | None = None,
) -> Bundle:
    """The bundle for :class:`retouch.EditSession` of a language model in which all tokens see each other.

    Args:
        directory: ``config.json`` and safetensors.
        output: directory to write; a bundle that is there is replaced.
        tokens: tokens of every text.
        adapter: how the model is exported; ``None`` means by its ``model_type``.
        tell: called with one line before every step.

    Raises:
        ModelError: there is no adapter for the model, it cannot be read, or it has experts.
        VerificationError: the bundle does not give what the model gives.
    """
    spec, weights = _opened(Path(directory), adapter)
    return export_decoder_edits(spec, weights, output, tokens, tell=tell)


def _opened(folder: Path, adapter: DecoderAdapter | None) -> tuple[DecoderSpec, DecoderWeights]:
    config = read_json(folder / CONFIG)
    found = adapter or decoder_for(config.get("model_type"))
    try:
        spec = found.spec(config)
    except KeyError as error:
        raise ModelError(f"{folder / CONFIG} has no {error}, which its model_type asks for. Save it again.") from error
    checkpoint = Checkpoint(folder)
    return spec, DecoderWeights(spec, lambda name: checkpoint.stacked(found.sources(name, config)))


def is_language_model(directory: Path) -> bool:
    """Whether a directory holds a language model that :func:`export_language_model` has an adapter for."""
    if not (directory / CONFIG).is_file():
        return False
    model_type = read_json(directory / CONFIG).get("model_type")
    return any(adapter.model_type == model_type for adapter in DECODERS)


def _symbols(folder: Path, spec: DecoderSpec) -> SymbolsSpec | None:
    """The symbols of a tokenizer of ours; other kinds are left to the caller."""
    if not (folder / _TOKENIZER).is_file():
        return None
    data = read_json(folder / _TOKENIZER)
    if data.get("kind") != "characters":
        return None
    symbols = data.get("symbols")
    if not isinstance(symbols, list) or not all(isinstance(symbol, str) for symbol in symbols):
        raise ModelError(f"Expected {folder / _TOKENIZER} to list symbols, got {symbols!r:.80}. Save the model again.")
    if len(symbols) + 2 != spec.vocabulary:
        raise ModelError(
            f"Expected {folder / _TOKENIZER} to list {spec.vocabulary - 2} symbols, as the model's vocabulary has "
            f"beside end and mask, got {len(symbols)}. Take the tokenizer that the model was trained with."
        )
    return SymbolsSpec(tuple(symbols))
