"""How well a network knows texts that it has not seen."""

from __future__ import annotations

import math

import torch

from retouch.models.code_lm._corpus import Corpus
from retouch.models.code_lm._network import CodeLm
from retouch.models.code_lm._objective import causal_entropy, negative_bound

__all__ = ["causal_bits", "held_out_bits"]

_BATCH = 32


def held_out_bits(network: CodeLm, corpus: Corpus, length: int, batches: int = 16) -> float:
    """A bound from above of the bits per character of a corpus, by :func:`negative_bound` on windows drawn from it."""
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        draws = [negative_bound(network, corpus.windows(_BATCH, length, generator), generator) for _ in range(batches)]
    return _per_character(draws, corpus)


def causal_bits(network: CodeLm, corpus: Corpus, length: int, batches: int = 16) -> float:
    """The bits per character of a corpus to an autoregressive network, on windows drawn from it."""
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        draws = [causal_entropy(network, corpus.windows(_BATCH, length, generator)).mean() for _ in range(batches)]
    return _per_character(draws, corpus)


def _per_character(nats: list[torch.Tensor], corpus: Corpus) -> float:
    return float(torch.stack(nats).mean()) / math.log(2) * len(corpus.ids) / corpus.characters
