"""Trains a network: ``python -m retouch.models.code_lm.train --corpus patterns``; goes on where it was stopped."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from retouch.models.code_lm._checkpoint import save_code_lm
from retouch.models.code_lm._config import CodeLmConfig
from retouch.models.code_lm._corpus import Corpus
from retouch.models.code_lm._patterns import held_out_patterns, training_patterns
from retouch.models.code_lm._python_source import python_source
from retouch.tokens import code_characters

if TYPE_CHECKING:
    from retouch.models.code_lm._objective import Losses

__all__ = ["CorpusName", "main"]

_REPORT_EVERY = 50
_PATTERNS = 12_000
_HELD_OUT = 200


class CorpusName(Enum):
    """What to learn from."""

    PATTERNS = "patterns"
    PYTHON = "python"


_TEXTS: dict[CorpusName, tuple[Callable[[], Iterable[str]], Callable[[], Iterable[str]]]] = {
    CorpusName.PATTERNS: (lambda: training_patterns(_PATTERNS), lambda: held_out_patterns(_HELD_OUT)),
    CorpusName.PYTHON: (python_source, lambda: python_source(held_out=True)),
}


def main(
    corpus: Annotated[CorpusName, typer.Option(help="What to learn from.")] = CorpusName.PATTERNS,
    work: Annotated[Path, typer.Option(help="Where checkpoint and log lie.")] = Path("build/code_lm"),
    out: Annotated[Path, typer.Option(help="Where the network goes.")] = Path("build/code_lm/model"),
    steps: Annotated[int, typer.Option(min=1, help="Steps in all.")] = 1_000,
    hidden: Annotated[int, typer.Option(help="Width; a multiple of 64.")] = 256,
    layers: Annotated[int, typer.Option(min=1, help="Layers.")] = 4,
    batch: Annotated[int, typer.Option(min=1, help="Texts of a step.")] = 32,
    length: Annotated[int, typer.Option(min=16, help="Tokens of a text; a multiple of 16.")] = 256,
    threads: Annotated[int, typer.Option(min=1, help="Threads of torch.")] = 1,
) -> None:
    """Trains a block-diffusion language model of characters and writes it in half precision."""
    import torch

    from retouch.models.code_lm._course import Course, Plan
    from retouch.models.code_lm._network import CodeLm
    from retouch.models.code_lm._scoring import held_out_bits

    torch.set_num_threads(threads)
    torch.manual_seed(0)
    tokenizer = code_characters()
    config = CodeLmConfig(
        hidden_size=hidden,
        num_hidden_layers=layers,
        num_attention_heads=4,
        head_dim=hidden // 4,
        intermediate_size=hidden * 11 // 4,
    )
    learn, keep_back = (Corpus.of(texts(), tokenizer) for texts in _TEXTS[corpus])
    plan = Plan(steps, batch, length)
    course = Course(work, CodeLm(config), plan)
    typer.echo(f"{len(learn.ids)} tokens to learn from, {len(keep_back.ids)} held out")
    course.run(learn, _reporter())
    save_code_lm(course.network, tokenizer, out)
    typer.echo(f"held out: {held_out_bits(course.network, keep_back, plan.length):.3f} bits per character at most")


def _reporter() -> Callable[[int, Losses], None]:
    start = time.process_time()

    def report(step: int, found: Losses) -> None:
        if step % _REPORT_EVERY == 0:
            kinds = ", ".join(f"{name} {getattr(found, name).item():.3f}" for name in ("masked", "noised", "clean"))
            typer.echo(f"{step}: {kinds}; {time.process_time() - start:.0f} s")

    return report


if __name__ == "__main__":
    typer.run(main)
