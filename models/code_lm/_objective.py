"""What the network is trained for: masked tokens, and tokens that were replaced by others."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

import torch
from torch import Tensor
from torch.nn import functional

from retouch.models.code_lm._config import CodeLmConfig
from retouch.models.code_lm._doubled import attend_causally, attend_doubled
from retouch.models.code_lm._network import CodeLm, block_mask

__all__ = [
    "Corruption",
    "Losses",
    "Objective",
    "causal_entropy",
    "causal_loss",
    "corrupt",
    "doubled_entropy",
    "losses",
    "negative_bound",
    "training_mask",
]

_LEAST_MASKED = 0.1
_NOISED_BLOCKS = 0.5
_MOST_NOISE = 0.3
_CLEAN_WEIGHT = 0.05


@dataclass(frozen=True)
class Corruption:
    """Texts with some of their tokens hidden.

    Attributes:
        ids: what the network sees, [B, L].
        masked: where the mask stands (M2T).
        noised: where another token stands (T2T).
    """

    ids: Tensor
    masked: Tensor
    noised: Tensor


@dataclass(frozen=True)
class Losses:
    """Cross-entropies in nats.

    Attributes:
        weighted: what is minimised.
        parts: means over tokens of a kind, by its name.
    """

    weighted: Tensor
    parts: Mapping[str, Tensor] = field(default_factory=dict)

    def figures(self) -> dict[str, float]:
        """The parts as numbers, for a log."""
        return {name: round(value.item(), 4) for name, value in self.parts.items()}


Objective = Callable[[CodeLm, Tensor, Tensor, torch.Generator], Losses]
"""The losses of a network on texts [B, L], where tokens occur so often [vocabulary], drawn from a generator."""

DoubledEntropy = Callable[[CodeLm, Tensor, Tensor], Tensor]
CausalEntropy = Callable[[CodeLm, Tensor], Tensor]


def corrupt(ids: Tensor, config: CodeLmConfig, shares: Tensor, generator: torch.Generator) -> Corruption:
    """Every block masked at a rate of its own; in half of the blocks some tokens that stay are replaced.

    Without replaced tokens the network would learn to repeat what it sees, and thresholds for edits would mean nothing
    (LLaDA2.1, https://arxiv.org/abs/2602.08676, trains for both as well).

    Args:
        ids: texts [B, L], L a multiple of the block length.
        config: block length and mask.
        shares: how often tokens occur, which replacements follow.
        generator: what is drawn from.
    """
    batch, length = ids.shape
    blocks = length // config.block_length

    def by_block(rates: Tensor) -> Tensor:
        return rates.repeat_interleave(config.block_length, 1)

    def uniform(*shape: int) -> Tensor:
        return torch.rand(shape, generator=generator)

    rate = by_block(_LEAST_MASKED + (1 - _LEAST_MASKED) * uniform(batch, blocks))
    masked = uniform(batch, length) < rate
    noise = by_block(_MOST_NOISE * uniform(batch, blocks) * (uniform(batch, blocks) < _NOISED_BLOCKS))
    noised = (uniform(batch, length) < noise) & ~masked
    others = torch.multinomial(shares, batch * length, replacement=True, generator=generator).view(batch, length)
    seen = ids.masked_fill(masked, config.mask_token_id)
    return Corruption(torch.where(noised, others, seen), masked, noised)


@lru_cache(maxsize=4)
def training_mask(length: int, block: int) -> Tensor:
    """What corrupted texts and, behind them, the same texts clean see of each other, [2L, 2L].

    Corrupted tokens see their own block and the clean form of earlier ones; clean tokens see clean ones as in use
    (https://arxiv.org/abs/2503.09573, vectorised training).
    """
    positions = torch.arange(length)
    own = (positions // block)[:, None] == (positions // block)[None]
    up_to = block_mask(positions, positions, block)
    above = torch.cat((own, up_to & ~own), 1)
    return torch.cat((above, torch.cat((torch.zeros_like(own), up_to), 1)))


def losses(
    network: CodeLm, ids: Tensor, shares: Tensor, generator: torch.Generator, entropy: DoubledEntropy | None = None
) -> Losses:
    """The losses of block diffusion on some texts [B, L]; ``entropy`` is :func:`doubled_entropy`, perhaps compiled."""
    hidden = corrupt(ids, network.config, shares, generator)
    found = (entropy or doubled_entropy)(network, ids, hidden.ids)
    weight = torch.where(hidden.masked | hidden.noised, 1.0, _CLEAN_WEIGHT)
    kinds = {"masked": hidden.masked, "noised": hidden.noised, "clean": ~hidden.masked & ~hidden.noised}
    parts = {name: found[kind].detach().mean() for name, kind in kinds.items()}
    return Losses((found * weight).sum() / weight.sum(), parts)


def causal_loss(
    network: CodeLm, ids: Tensor, shares: Tensor, generator: torch.Generator, entropy: CausalEntropy | None = None
) -> Losses:
    """The loss of an autoregressive network: every token from those before it. Nothing is drawn."""
    del shares, generator
    found = (entropy or causal_entropy)(network, ids).mean()
    return Losses(found, {"next": found.detach()})


def negative_bound(network: CodeLm, ids: Tensor, generator: torch.Generator) -> Tensor:
    """A bound from above of the texts' negative log-likelihood, in nats a token, from one draw of masks.

    With a share t of a block masked, drawn evenly from 0 to 1, the sum over masked tokens divided by t
    (https://arxiv.org/abs/2406.07524, equation 10, linear schedule).
    """
    config = network.config
    rate = torch.rand(ids.shape[0], ids.shape[1] // config.block_length, generator=generator).clamp_min(1e-3)
    rate = rate.repeat_interleave(config.block_length, 1)
    masked = torch.rand(ids.shape, generator=generator) < rate
    hidden = Corruption(ids.masked_fill(masked, config.mask_token_id), masked, torch.zeros_like(masked))
    return (doubled_entropy(network, ids, hidden.ids) * masked / rate).mean()


def doubled_entropy(network: CodeLm, ids: Tensor, seen: Tensor) -> Tensor:
    """The cross-entropy of every token [B, L] where its block is as in ``seen``, and earlier ones are clean."""
    length = ids.shape[1]
    attend = attend_doubled(length, network.config.block_length)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        logits, _ = network(torch.cat((seen, ids), 1), torch.arange(length).repeat(2), attend, logits_of=length)
    return functional.cross_entropy(logits.float().flatten(0, 1), ids.flatten(), reduction="none").view(ids.shape)


def causal_entropy(network: CodeLm, ids: Tensor) -> Tensor:
    """The cross-entropy of every token but the first [B, L - 1], from those before it."""
    length = ids.shape[1] - 1
    with torch.autocast("cpu", dtype=torch.bfloat16):
        logits, _ = network(ids[:, :-1], torch.arange(length), attend_causally(length))
    wanted = ids[:, 1:]
    entropy = functional.cross_entropy(logits.float().flatten(0, 1), wanted.flatten(), reduction="none")
    return entropy.view(wanted.shape)
