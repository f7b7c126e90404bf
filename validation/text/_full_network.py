"""Networks for measuring caches: masked diffusion with full attention, trained briefly."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer

from retouch.models.code_lm import (
    CodeLmConfig,
    Corpus,
    CorpusName,
    load_code_lm,
    load_tokenizer,
    python_source,
    save_code_lm,
    training_patterns,
)
from retouch.tokens import code_characters

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from retouch.models.code_lm._network import CodeLm

__all__ = ["train_full_main"]

_TEXTS = 12_000
_MUON_RATE, _RATE, _DECAY, _WARM_UP = 0.02, 3e-3, 0.5, 50
_LEAST_MASKED = 0.05
_REPORT_EVERY = 50


def train_full_main(
    corpus: Annotated[CorpusName, typer.Option(help="What to learn from.")] = CorpusName.PATTERNS,
    out: Annotated[Path, typer.Option(help="Where the network goes.")] = Path("build/text/full"),
    steps: Annotated[int, typer.Option(min=1, help="Steps.")] = 900,
    batch: Annotated[int, typer.Option(min=1, help="Texts of a step.")] = 8,
    length: Annotated[int, typer.Option(min=16, help="Tokens of a text.")] = 384,
    start: Annotated[Path | None, typer.Option(help="Directory of a network to begin with, in its shape.")] = None,
    hidden: Annotated[int, typer.Option(help="Width; a multiple of 64.")] = 256,
    layers: Annotated[int, typer.Option(min=1, help="Layers.")] = 4,
    threads: Annotated[int, typer.Option(min=1, help="Threads of torch.")] = 1,
) -> None:
    """Trains a language model in which all tokens see each other, and writes it in half precision."""
    import torch

    from retouch.models.code_lm._network import CodeLm

    torch.set_num_threads(threads)
    torch.manual_seed(0)
    tokenizer = code_characters() if start is None else load_tokenizer(start)
    texts = python_source() if corpus is CorpusName.PYTHON else training_patterns(_TEXTS)
    learned = Corpus.of(texts, tokenizer)
    config = CodeLmConfig(
        hidden_size=hidden,
        num_hidden_layers=layers,
        head_dim=hidden // 4,
        intermediate_size=hidden * 11 // 4,
        block_length=32,
    )
    network = CodeLm(config) if start is None else load_code_lm(start).train()
    _train(network, learned, steps, batch, length)
    save_code_lm(network, tokenizer, out)


def _train(network: CodeLm, corpus: Corpus, steps: int, batch: int, length: int) -> None:
    import torch

    matrices = [weight for weight in network.model.layers.parameters() if weight.ndim == 2]
    others = [weight for weight in network.parameters() if not any(weight is matrix for matrix in matrices)]
    muon = torch.optim.Muon(matrices, _MUON_RATE, weight_decay=0.01, adjust_lr_fn="original")
    adam = torch.optim.AdamW(others, _RATE, betas=(0.9, 0.98), weight_decay=0.01)
    start = time.process_time()
    for step in range(steps):
        share = min(1.0, (step + 1) / _WARM_UP, (steps - step) / (_DECAY * steps))
        for optimizer, rate in ((muon, _MUON_RATE), (adam, _RATE)):
            optimizer.param_groups[0]["lr"] = rate * share
        generator = torch.Generator().manual_seed(step)
        loss = _loss(network, corpus.windows(batch, length, generator), generator)
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        for one in (muon, adam):
            one.step()  # type: ignore[no-untyped-call]
            one.zero_grad()
        if step % _REPORT_EVERY == 0 or step == steps - 1:
            typer.echo(f"{step}: {loss.item():.3f} nats per masked token; {time.process_time() - start:.0f} s")


def _loss(network: CodeLm, ids: Tensor, generator: torch.Generator) -> Tensor:
    """The mean cross-entropy of masked tokens; every text is masked at a rate of its own.

    Half of the texts are masked behind a random place only, as texts are when they are made block after block.
    """
    import torch
    from torch.nn import functional

    batch, length = ids.shape
    rate = _LEAST_MASKED + (1 - _LEAST_MASKED) * torch.rand((batch, 1), generator=generator)
    masked = torch.rand(ids.shape, generator=generator) < rate
    begin = torch.randint(length, (batch, 1), generator=generator)
    behind = torch.arange(length) >= begin + 32
    ahead = torch.arange(length) < begin
    by_block = torch.from_numpy(np.arange(batch) % 2 == 0)[:, None]
    masked = torch.where(by_block, (masked & ~ahead) | behind, masked)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        seen = ids.masked_fill(masked, network.config.mask_token_id)
        logits, _ = network(seen, torch.arange(length))
    entropy = functional.cross_entropy(logits.float().flatten(0, 1), ids.flatten(), reduction="none").view(ids.shape)
    # Far masks carry no more than how often tokens occur: they are learned soon, and count little.
    weight = masked * torch.where(by_block & behind, 0.1, 1.0)
    return (entropy * weight).sum() / weight.sum().clamp_min(1)
