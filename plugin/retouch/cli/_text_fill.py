"""``retouch text fill`` and ``retouch text cluster``: texts of models in which all tokens see each other."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console

from retouch.cli._steps import Steps
from retouch.cli._text_caches import CacheName, chosen_cache
from retouch.cli._text_delivery import deliver_text
from retouch.cli._text_options import BundlePath, Json, Prompt, Threads, prompt_of
from retouch.text import TextModel
from retouch.text.full_attention import FullAttentionSampler, Measure, UnmaskOptions, find_clusters
from retouch.text_view import TextView

_Length = Annotated[int, typer.Option("--tokens", "-n", min=1, help="New tokens.")]
_Cache = Annotated[CacheName, typer.Option(help="Which rows forwards compute.")]
_Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="A setting of the cache, such as interval=8; repeatable."),
]
_Horizon = Annotated[
    int | None, typer.Option(min=0, help="Leave out rows that are farther behind the block than this.")
]
_Block = Annotated[int | None, typer.Option(min=1, help="Tokens of a block; by default the model's usual.")]
_Steps = Annotated[int | None, typer.Option(min=1, help="Forwards that a block is spread over evenly.")]
_Threshold = Annotated[float | None, typer.Option(help="Set all masks whose probability is above this.")]
_Factor = Annotated[float | None, typer.Option(help="Set as many masks as this allows (Fast-dLLM).")]
_Measure = Annotated[Measure, typer.Option(help="How sure the model is of a token.")]
_StopAtEnd = Annotated[bool, typer.Option("--stop-at-end", help="A finished block with an end token ends the text.")]
_Audit = Annotated[
    bool, typer.Option("--audit", help="Run the model itself beside every forward, and say how far the cache is off.")
]
_Prompts = Annotated[list[str], typer.Option("--prompt", "-p", help="What a text begins with; repeatable.")]
_Clusters = Annotated[int, typer.Option(min=1, help="Number of clusters.")]


def fill(
    bundle: BundlePath,
    prompt: Prompt,
    tokens: _Length = 128,
    cache: _Cache = CacheName.NONE,
    settings: _Settings = None,
    horizon: _Horizon = None,
    block: _Block = None,
    steps: _Steps = None,
    threshold: _Threshold = None,
    factor: _Factor = None,
    measure: _Measure = Measure.PROBABILITY,
    stop_at_end: _StopAtEnd = False,
    audit: _Audit = False,
    threads: Threads = None,
    json_file: Json = None,
) -> None:
    """Continues a prompt with full attention (LLaDA, Dream), the surest masks of a block first, over a cache.

    The text goes to standard output, what it took and how old was what it used to standard error. All these caches
    approximate: --audit measures by how much. On a terminal blocks are shown as they are filled.
    """
    model = TextModel(bundle, threads=threads)
    options = UnmaskOptions(block, steps, threshold, factor, measure, stop_at_end)
    policy = chosen_cache(cache, settings or [], horizon, model)
    sampler = FullAttentionSampler(model, policy, options)
    ids = sampler.tokens_of(prompt_of(prompt))
    with TextView(sampler.tokenizer, model.spec.mask_id, ids, len(ids)) as view:
        made = sampler.generate(ids.tolist(), tokens, audit=audit, callback=view.told)
    deliver_text(made.text, made.tokens.tolist(), made.report, json_file)


def cluster(
    bundle: BundlePath,
    prompts: _Prompts,
    tokens: _Length = 128,
    count: _Clusters = 8,
    block: _Block = None,
    threads: Threads = None,
) -> None:
    """Finds the clusters of positions that the anchored cache needs, from texts that the model makes, and keeps them.

    They are written into the bundle; texts that begin like those that will be made, and are as long, serve best.
    """
    model = TextModel(bundle, threads=threads)
    with Steps() as progress:
        progress.begin(f"{len(prompts)} texts without a cache")
        given = [prompt_of(prompt) for prompt in prompts]
        found = find_clusters(model, given, tokens, count=count, options=UnmaskOptions(block=block))
        stored = model.bundle.with_clusters(found)
    sizes = ", ".join(str(found.labels.count(label)) for label in range(found.count))
    Console().print(f"{found.count} clusters of {sizes} positions, in {stored.path}", soft_wrap=True)
