"""Trains a network: ``python -m retouch.models.code_lm.train --corpus patterns``; goes on where it was stopped."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from retouch.models.code_lm._checkpoint import load_code_lm, save_code_lm
from retouch.models.code_lm._config import CodeLmConfig
from retouch.models.code_lm._corpora import CorpusName, corpora

if TYPE_CHECKING:
    from retouch.models.code_lm._corpus import Corpus
    from retouch.models.code_lm._network import CodeLm
    from retouch.models.code_lm._objective import Losses, Objective

__all__ = ["Kind", "main"]

_REPORT_EVERY = 50


class Kind(Enum):
    """What the network predicts."""

    DIFFUSION = "diffusion"
    """The tokens of a block, masked or replaced."""
    CAUSAL = "causal"
    """The next token: the baseline."""


@dataclass(frozen=True)
class _Course:
    objective: Objective
    bits: Callable[[CodeLm, Corpus, int], float]


def main(
    corpus: Annotated[CorpusName, typer.Option(help="What to learn from.")] = CorpusName.PATTERNS,
    kind: Annotated[Kind, typer.Option(help="What the network predicts.")] = Kind.DIFFUSION,
    work: Annotated[Path, typer.Option(help="Where checkpoint and log lie.")] = Path("build/code_lm"),
    out: Annotated[Path, typer.Option(help="Where the network goes.")] = Path("build/code_lm/model"),
    minutes: Annotated[
        float | None, typer.Option(min=0.01, help="CPU time in all; 20 if --steps is not given.")
    ] = None,
    steps: Annotated[int | None, typer.Option(min=1, help="Steps in all.")] = None,
    hidden: Annotated[int, typer.Option(help="Width; a multiple of 64.")] = 192,
    layers: Annotated[int, typer.Option(min=1, help="Layers.")] = 5,
    batch: Annotated[int, typer.Option(min=1, help="Texts of a step.")] = 16,
    length: Annotated[int, typer.Option(min=16, help="Tokens of a text; a multiple of 16.")] = 256,
    begin: Annotated[Path | None, typer.Option(help="Directory of a network to begin with.")] = None,
    compiled: Annotated[bool, typer.Option("--compile/--no-compile", help="Compile; needs a C++ compiler.")] = True,
    threads: Annotated[int, typer.Option(min=1, help="Threads of torch.")] = 1,
) -> None:
    """Trains a language model of code and writes it in half precision. The rate falls to nothing at the end."""
    import torch

    from retouch.models.code_lm._course import Course, Plan
    from retouch.models.code_lm._network import CodeLm

    torch.set_num_threads(threads)
    torch.manual_seed(0)
    tokenizer, learn, keep_back = corpora(corpus)
    config = CodeLmConfig(
        vocab_size=tokenizer.vocabulary,
        mask_token_id=tokenizer.mask_id,
        eos_token_id=tokenizer.eos_id,
        hidden_size=hidden,
        num_hidden_layers=layers,
        num_attention_heads=4,
        head_dim=hidden // 4,
        intermediate_size=hidden * 11 // 4,
    )
    network = CodeLm(config) if begin is None else load_code_lm(begin).train()
    limit = 20.0 if minutes is None and steps is None else minutes
    plan = Plan(steps, None if limit is None else 60 * limit, batch, length)
    course = Course(work, network, plan)
    size = sum(parameter.numel() for parameter in network.parameters())
    typer.echo(f"{size} weights; {len(learn.ids)} tokens to learn from, {len(keep_back.ids)} held out")
    chosen = _course(kind, compiled=compiled)
    course.run(learn, chosen.objective, _report)
    save_code_lm(course.network, tokenizer, out)
    bits = chosen.bits(course.network, keep_back, length)
    typer.echo(f"held out: {bits:.3f} bits per character{' at most' if kind is Kind.DIFFUSION else ''}")


def _course(kind: Kind, *, compiled: bool) -> _Course:
    import torch

    from retouch.models.code_lm import _objective, _scoring

    def prepared(entropy: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
        return torch.compile(entropy, dynamic=False) if compiled else entropy

    if kind is Kind.CAUSAL:
        return _Course(
            partial(_objective.causal_loss, entropy=prepared(_objective.causal_entropy)), _scoring.causal_bits
        )
    return _Course(partial(_objective.losses, entropy=prepared(_objective.doubled_entropy)), _scoring.held_out_bits)


def _report(step: int, seconds: float, found: Losses) -> None:
    if step % _REPORT_EVERY == 0:
        kinds = ", ".join(f"{name} {value:.3f}" for name, value in found.figures().items())
        typer.echo(f"{step}: {kinds}; {seconds:.0f} s")


if __name__ == "__main__":
    typer.run(main)
