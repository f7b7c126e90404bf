"""How likely a model with a cache finds texts that it is told token by token."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from retouch.text.full_attention import FullAttentionSampler, Measure, RowTally, likeliest, log_shares, surest

__all__ = ["ForcedRun", "forced_run"]

Tokens = NDArray[np.int64]
Order = list[Tokens]


@dataclass(frozen=True)
class ForcedRun:
    """A text that was told in some order.

    Attributes:
        nats: negative logarithm of the text's likelihood in that order.
        right: how many tokens were the model's choice as well.
        order: the positions that were told after each forward.
        tally: what the forwards came to.
        cpu_s: CPU time of the forwards.
        wall_s: their time on the clock.
    """

    nats: float
    right: int
    order: Order
    tally: RowTally
    cpu_s: float
    wall_s: float


def forced_run(
    sampler: FullAttentionSampler, text: Tokens, prompt: int, order: Order | None = None, *, forwards: int | None = None
) -> ForcedRun:
    """A run in which every token becomes that of the text.

    Args:
        sampler: the model, the cache, and how many masks are set after a forward.
        text: the text [N].
        prompt: tokens of the prompt.
        order: the positions to tell after every forward; ``None`` means those that the model is surest of.
        forwards: stop after so many; ``None`` means at the end.
    """
    spec, size = sampler.model.spec, sampler.options.block or sampler.model.spec.block
    denoising = sampler.begin(text[:prompt], len(text) - prompt)
    told: Order = []
    nats, right, cpu, wall = 0.0, 0, 0.0, 0.0
    for low in range(prompt, len(text), size):
        block = (low, min(low + size, len(text)))
        step = 0
        while (masked := denoising.masked[block[0] : block[1]]).any() and len(told) != forwards:
            positions = low + np.flatnonzero(masked)
            before = time.process_time(), time.perf_counter()
            logits = denoising.read(block, positions).logits
            cpu, wall = cpu + time.process_time() - before[0], wall + time.perf_counter() - before[1]
            tokens, confidence = likeliest(logits, spec.mask_id, Measure.PROBABILITY)
            if order is None:
                least = sampler.options.transfers(step, block[1] - block[0])
                places = surest(confidence, sampler.options, least)
            else:
                places = np.searchsorted(positions, np.sort(order[len(told)]))
            now = positions[places]
            nats -= float(log_shares(logits[places], spec.mask_id)[np.arange(len(now)), text[now]].sum())
            right += int((tokens[places] == text[now]).sum())
            told.append(now)
            denoising.set(now, text[now])
            step += 1
    return ForcedRun(nats, right, told, denoising.tally, cpu, wall)
