"""What an adapter of a language model is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from retouch.bundle import DecoderSpec
from retouch.errors import ModelError

__all__ = ["Config", "DecoderAdapter", "check_config"]

Config = Mapping[str, Any]


@dataclass(frozen=True)
class DecoderAdapter:
    """How models of one type are exported: where their configuration and their weights are.

    Attributes:
        model_type: the ``model_type`` of their configuration.
        spec: the model's shape, from its configuration.
        weights: the tensors of the checkpoint that a weight (:class:`retouch.export.decoder.DecoderWeights`) consists
            of, one below the other; ``{layer}`` stands for a layer's number, ``{expert}`` for an expert's.
        tied: whether the output layer is the embedding.
    """

    model_type: str
    spec: Callable[[Config], DecoderSpec]
    weights: Mapping[str, tuple[str, ...]]
    tied: Callable[[Config], bool]

    def sources(self, name: str, config: Config) -> tuple[str, ...]:
        """The checkpoint's tensors of a weight, such as ``head`` or ``3.qkv``."""
        if name == "head" and self.tied(config):
            name = "embedding"
        parts = name.split(".")
        kind = next(part for part in parts if not part.isdigit())
        numbers = dict(zip(("layer", "expert"), (part for part in parts if part.isdigit()), strict=False))
        return tuple(source.format(**numbers) for source in self.weights[kind])


def check_config(config: Config, expected: Config, name: str) -> None:
    """Checks that a configuration asks for nothing that an adapter does not have.

    Args:
        config: the configuration.
        expected: what members have to be if they are there.
        name: the family's name, for the message.

    Raises:
        ModelError: a member is something else.
    """
    for key, wanted in expected.items():
        if config.get(key, wanted) != wanted:
            raise ModelError(
                f"Expected a {name} model with {key} = {wanted!r}, got {config[key]!r}. Write an adapter "
                "(models/README.md) and pass it as adapter=..."
            )
