"""Greedy completions by the autoregressive baseline, in torch."""

from __future__ import annotations

import torch

from retouch.models.code_lm._network import CodeLm, KeyValues, block_mask
from retouch.tokens import CharacterTokenizer
from retouch.validation.text._completions import Completion

__all__ = ["complete_causally"]


@torch.no_grad()
def complete_causally(network: CodeLm, tokenizer: CharacterTokenizer, length: int, prompt: str) -> Completion:
    """The likeliest next token, over and over, up to so many or the end. Windows of its training begin anywhere."""
    ids = tokenizer.encode(prompt)
    logits, kept = _read(network, ids, 0, None)
    made: list[int] = []
    while len(made) < length:
        logits[tokenizer.mask_id] = -torch.inf
        made.append(int(logits.argmax()))
        if made[-1] == tokenizer.eos_id:
            break
        logits, kept = _read(network, made[-1:], len(ids) + len(made) - 1, kept)
    text = tokenizer.decode(made)
    return Completion(prompt + text, made[-1] == tokenizer.eos_id, len(made), len(text), len(made))


def _read(
    network: CodeLm, ids: list[int], start: int, past: list[KeyValues] | None
) -> tuple[torch.Tensor, list[KeyValues]]:
    positions = torch.arange(start, start + len(ids))
    mask = block_mask(positions, torch.arange(start + len(ids)), 1)
    logits, kept = network(torch.tensor([ids]), positions, mask, past)
    return logits[0, -1], kept
