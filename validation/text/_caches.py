"""Cost against quality of every cache: ``python -m retouch.validation.text.caches``."""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from numpy.typing import NDArray

from retouch.bundle import TextBundle
from retouch.models.code_lm import (
    PATTERNS_MODEL,
    Corpus,
    CorpusName,
    held_out_patterns,
    load_tokenizer,
    python_source,
    training_patterns,
)
from retouch.models.decoders import export_language_model
from retouch.text import TextModel
from retouch.text.full_attention import (
    FullAttentionSampler,
    RowPlan,
    RowStates,
    UnmaskOptions,
    find_clusters,
    separator_ids,
)
from retouch.tokens import Tokenizer
from retouch.validation.text._cache_cases import CacheCase, cache_cases
from retouch.validation.text._cache_page import Timings, write_page
from retouch.validation.text._forced import ForcedRun, forced_run

__all__ = ["CacheFigures", "caches_main", "compare_caches"]

_PROMPT = 16
_BATCH = 8

Tokens = NDArray[np.int64]


@dataclass(frozen=True)
class CacheFigures:
    """What a cache came to, over all texts.

    Attributes:
        family: the method.
        settings: its settings.
        tokens: tokens of a text, those of the prompt included.
        per_forward: tokens that were told after a forward.
        flops: floating-point operations over those without a cache.
        cpu: CPU time over that without a cache.
        wall: time on the clock over that without a cache.
        cpu_ms: CPU time of a forward.
        nats: negative logarithm of the likelihood, per token.
        loss: how much greater that is than without a cache, as a share.
        right: share of tokens that were the model's choice as well.
        mean_age: mean age of what was used, in forwards.
        max_age: the greatest.
    """

    family: str
    settings: str
    tokens: int
    per_forward: float
    flops: float
    cpu: float
    wall: float
    cpu_ms: float
    nats: float
    loss: float
    right: float
    mean_age: float
    max_age: int


def caches_main(
    model: Annotated[Path, typer.Argument(help="Directory of a network.")] = PATTERNS_MODEL,
    corpus: Annotated[CorpusName, typer.Option(help="What the texts are taken from.")] = CorpusName.PATTERNS,
    out: Annotated[Path, typer.Option(help="Where figures and bundle go.")] = Path("out/text-caches"),
    page: Annotated[Path | None, typer.Option(help="A page to write, with a picture beside it.")] = None,
    texts: Annotated[int, typer.Option(min=1, help="Held-out texts.")] = 3,
    tokens: Annotated[int, typer.Option(min=32, help="Tokens of a text.")] = 512,
    block: Annotated[int, typer.Option(min=1, help="Tokens of a block.")] = 32,
    threads: Annotated[int, typer.Option(min=1, help="Threads.")] = 1,
    skip: Annotated[int, typer.Option(min=0, help="Leave out so many held-out texts, the first ones.")] = 0,
    only: Annotated[str | None, typer.Option(help="Print those caches whose names hold this; no page.")] = None,
) -> None:
    """Compares every cache on held-out texts: what it costs, and how likely it makes the model find them."""
    tokenizer = load_tokenizer(model)
    learned, unseen = corpus_texts(corpus, (skip + texts) * tokens)
    bundle = clustered(export_language_model(model, out / "bundle"), windows(learned, tokenizer, tokens, 2), block)
    opened = TextModel(bundle, threads=threads)
    exempt = separator_ids(tokenizer, tokenizer.vocabulary)
    held_out = windows(unseen, tokenizer, tokens, skip + texts)[skip:]
    if only is not None:
        _print_only(compare_caches(opened, held_out, _cases_of(exempt, only), UnmaskOptions(block=block)))
        return
    typer.echo(f"curve: {texts} texts of {tokens} tokens")
    curve = compare_caches(opened, held_out, cache_cases(exempt), UnmaskOptions(block=block))
    others = []
    for length, steps in ((64, None), (128, None), (256, None), (tokens, block // 4)):
        typer.echo(f"texts of {length} tokens, {1 if steps is None else 4} a forward")
        shorter = [text[:length] for text in held_out]
        others += compare_caches(opened, shorter, cache_cases(exempt, each=2), UnmaskOptions(block=block, steps=steps))
    plain = {count: plain_ms(opened, held_out[0], count) for count in (1, _BATCH)}
    figures = {"curve": curve, "others": others}
    text: dict[str, object] = {name: [dataclasses.asdict(row) for row in rows] for name, rows in figures.items()}
    by_rows = {
        count: rows_ms(opened, held_out[0], count) for count in (1, 16, 32, 64, 128, 256, tokens) if count <= tokens
    }
    text |= {"plain ms": plain, "rows ms": by_rows}
    (out / "figures.json").write_text(json.dumps(text, indent=1) + "\n", encoding="utf-8")
    if page is not None:
        shape = f"{corpus.value}: {bundle.manifest.model.layers} layers of {bundle.manifest.model.hidden}"
        write_page(page, curve, others, Timings(plain, by_rows), shape)


def _cases_of(exempt: tuple[int, ...], only: str) -> list[CacheCase]:
    plain, *others = cache_cases(exempt)
    return [plain, *(case for case in others if only in f"{case.family}, {case.settings}")]


def _print_only(rows: Sequence[CacheFigures]) -> None:
    for row in rows:
        typer.echo(
            f"{row.family}, {row.settings}: FLOPs 1 / {1 / row.flops:.2f}, CPU time 1 / {1 / row.cpu:.2f}, loss "
            f"{row.loss:+.2%}, oldest {row.max_age}"
        )


def plain_ms(model: TextModel, text: Tokens, count: int, repeats: int = 7) -> float:
    """CPU time per text, in milliseconds, of the graph without caches, which reads so many texts at once."""
    ids = np.repeat(text[None], count, 0)
    positions = np.repeat(np.arange(len(text))[None], count, 0)
    program = model.engine.open(model.bundle.full_graph)
    feeds = {"ids": ids, "positions": positions, "block": np.array([len(text)])}
    values = {name: model.engine.value(array) for name, array in feeds.items()}
    return _median_ms(lambda: program.run(values), repeats) / count


def rows_ms(model: TextModel, text: Tokens, count: int, repeats: int = 15) -> float:
    """CPU time of a forward that computes so many rows of a text, in milliseconds."""
    states, start = RowStates(model, len(text)), (len(text) - count) // 2
    plan = RowPlan(np.arange(start, start + count))
    wanted = np.arange(start, start + min(count, 16))
    return _median_ms(lambda: states.forward(text, plan, wanted), repeats)


def _median_ms(run: Callable[[], object], repeats: int) -> float:
    """CPU time in milliseconds, the median after a first time that does not count."""
    taken = []
    for _ in range(repeats + 1):
        start = time.process_time()
        run()
        taken.append(time.process_time() - start)
    return 1e3 * float(np.median(taken[1:]))


def corpus_texts(name: CorpusName, tokens: int) -> tuple[Iterable[str], Iterable[str]]:
    """Texts that networks learned from, enough for a few windows, and held-out ones, enough for so many tokens."""
    if name is CorpusName.PYTHON:
        return python_source()[:40], python_source(held_out=True)
    return training_patterns(60), held_out_patterns(40 + 40 * tokens // 512)


def clustered(bundle: TextBundle, texts: Sequence[Tokens], block: int) -> TextBundle:
    """The bundle with clusters that were found on texts that begin as some do."""
    model = TextModel(bundle, threads=1)
    # Four tokens a forward: it is only to be seen how rows change.
    options = UnmaskOptions(block=block, steps=max(block // 4, 1))
    prompts = [text[:_PROMPT].tolist() for text in texts]
    return bundle.with_clusters(find_clusters(model, prompts, len(texts[0]) - _PROMPT, options=options))


def windows(texts: Iterable[str], tokenizer: Tokenizer, tokens: int, count: int) -> list[Tokens]:
    """So many texts of so many tokens, from a row of shorter ones; none overlap."""
    ids = Corpus.of(texts, tokenizer).ids.astype(np.int64)
    return [ids[start : start + tokens] for start in range(0, count * tokens, tokens)]


def compare_caches(
    model: TextModel, texts: Sequence[Tokens], cases: Sequence[CacheCase], options: UnmaskOptions
) -> list[CacheFigures]:
    """What every case came to. All tell a text in the order that the model without a cache would choose.

    Args:
        model: the model.
        texts: the texts, told behind their first tokens.
        cases: the first one is without a cache.
        options: how many masks are set after a forward.
    """
    runs: list[list[ForcedRun]] = [[] for _ in cases]
    samplers = [FullAttentionSampler(model, case.policy, options) for case in cases]
    for sampler in samplers:
        forced_run(sampler, texts[0], _PROMPT, forwards=3)  # graphs load
    for text in texts:
        order = None
        for sampler, made in zip(samplers, runs, strict=True):
            made.append(forced_run(sampler, text, _PROMPT, order))
            order = made[-1].order if order is None else order
    return [_figures(case, made, runs[0], len(texts[0])) for case, made in zip(cases, runs, strict=True)]


def _figures(case: CacheCase, runs: Sequence[ForcedRun], base: Sequence[ForcedRun], tokens: int) -> CacheFigures:
    told = len(runs) * (tokens - _PROMPT)
    forwards = sum(run.tally.forwards for run in runs)
    nats, without = sum(run.nats for run in runs), sum(run.nats for run in base)
    cpu = sum(run.cpu_s for run in runs)
    return CacheFigures(
        family=case.family,
        settings=case.settings,
        tokens=tokens,
        per_forward=told / forwards,
        flops=sum(run.tally.flops for run in runs) / sum(run.tally.full_flops for run in runs),
        cpu=cpu / sum(run.cpu_s for run in base),
        wall=sum(run.wall_s for run in runs) / sum(run.wall_s for run in base),
        cpu_ms=1e3 * cpu / forwards,
        nats=nats / told,
        loss=nats / without - 1,
        right=sum(run.right for run in runs) / told,
        mean_age=sum(run.tally.ages for run in runs) / forwards,
        max_age=max(run.tally.oldest for run in runs),
    )
