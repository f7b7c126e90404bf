"""Attention of training: over a text and its corrupted form at once, without the scores that a mask would hide."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from retouch.models.code_lm._network import Attend, block_mask

__all__ = ["attend_causally", "attend_doubled"]


def attend_doubled(length: int, block: int) -> Attend:
    """The attention of :func:`training_mask`: over corrupted texts with, behind them, the same texts clean.

    Corrupted tokens see the clean form of earlier blocks, and their own block as it is corrupted.
    """

    def attend(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        query, scale = _grouped(query, key)
        corrupted, clean = query[..., :length, :] * scale, query[..., length:, :] * scale
        clean_key, clean_value = key[:, :, None, length:], value[:, :, None, length:]
        of_clean = torch.softmax(clean @ clean_key.mT + _hidden(length, block, 0).to(query.dtype), -1) @ clean_value
        earlier = corrupted @ clean_key.mT + _hidden(length, block, 1).to(query.dtype)
        own = _blocks(corrupted, block) @ _blocks(key[:, :, None, :length], block).mT
        shares = torch.softmax(torch.cat((earlier, own.flatten(3, 4)), -1), -1)
        mixed = _blocks(shares[..., length:], block) @ _blocks(value[:, :, None, :length], block)
        of_corrupted = shares[..., :length] @ clean_value + mixed.flatten(3, 4)
        return torch.cat((of_corrupted, of_clean), 3).flatten(1, 2)

    return attend


def attend_causally(length: int) -> Attend:
    """The attention of an autoregressive network: every token sees itself and earlier ones."""

    def attend(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        query, scale = _grouped(query, key)
        scores = (query * scale) @ key[:, :, None].mT + _hidden(length, 1, 0).to(query.dtype)
        return (torch.softmax(scores, -1) @ value[:, :, None]).flatten(1, 2)

    return attend


def _grouped(query: Tensor, key: Tensor) -> tuple[Tensor, float]:
    """Queries by the head of keys that they share [B, kv_heads, shared, N, head_dim], and the scale of scores."""
    grouped: Tensor = query.unflatten(1, (key.shape[1], -1))  # type: ignore[no-untyped-call]
    return grouped, 1 / math.sqrt(query.shape[-1])


def _blocks(x: Tensor, block: int) -> Tensor:
    blocks: Tensor = x.unflatten(3, (-1, block))  # type: ignore[no-untyped-call]
    return blocks


def _hidden(length: int, block: int, behind: int) -> Tensor:
    """What is added to scores [L, L]: minus infinity unless a key's block lies at least so many before the query's."""
    positions = torch.arange(length)
    seen = block_mask(positions - behind * block, positions, block)
    return torch.zeros(length, length).masked_fill(~seen, -math.inf)
