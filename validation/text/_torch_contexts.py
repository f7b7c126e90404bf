"""The network in torch as contexts of a sampler, with and without a cache."""

from __future__ import annotations

import numpy as np
import torch

from retouch.models.code_lm._network import CodeLm, KeyValues, block_mask
from retouch.text import Context

__all__ = ["TorchCached", "TorchUncached"]


class TorchCached(Context):
    """Keys and values of earlier tokens are kept as tensors, behind which those of a read are put."""

    def __init__(self, network: CodeLm) -> None:
        self._network = network
        self._kept: list[KeyValues] = []

    @torch.no_grad()
    def read(self, ids: np.ndarray, start: int) -> np.ndarray:
        """See :class:`Context`."""
        past = [(keys[:, :, :start], values[:, :, :start]) for keys, values in self._kept] if start else None
        positions, block = torch.arange(start, start + len(ids)), self._network.config.block_length
        # A single block sees all there is, and a mask would only cost time.
        mask = None if len(ids) <= block else block_mask(positions, torch.arange(start + len(ids)), block)
        logits, self._kept = self._network(torch.from_numpy(ids)[None], positions, mask, past)
        return np.asarray(logits[0].numpy())


class TorchUncached(Context):
    """Every read computes all tokens so far, as published loops do."""

    def __init__(self, network: CodeLm, rows: int) -> None:
        self._network = network
        self._ids = torch.zeros(rows, dtype=torch.int64)

    @torch.no_grad()
    def read(self, ids: np.ndarray, start: int) -> np.ndarray:
        """See :class:`Context`."""
        end = start + len(ids)
        self._ids[start:end] = torch.from_numpy(ids)
        positions = torch.arange(end)
        mask = block_mask(positions, positions, self._network.config.block_length)
        return np.asarray(self._network(self._ids[None, :end], positions, mask)[0][0, start:].numpy())
