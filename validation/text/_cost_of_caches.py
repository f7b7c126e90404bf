"""What caches of full attention cost on a network of some size."""

from __future__ import annotations

import json
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from retouch.bundle import ClustersSpec, TextBundle
from retouch.models.decoders import export_language_model
from retouch.text import TextModel
from retouch.text.full_attention import FullAttentionSampler, UnmaskOptions
from retouch.validation.text._cache_cases import CacheCase, cache_cases
from retouch.validation.text._forced import ForcedRun, forced_run
from retouch.validation.text._shapes import Shape, random_network

__all__ = ["cost_of_caches_main"]


@dataclass(frozen=True)
class CostFigures:
    """What a cache costs.

    Attributes:
        cache: the cache with its settings.
        flops: floating-point operations over those without a cache.
        cpu: CPU time over that without a cache.
        wall: time on the clock over that without a cache.
        cpu_ms: CPU time of a forward.
    """

    cache: str
    flops: float
    cpu: float
    wall: float
    cpu_ms: float


def cost_of_caches_main(
    shape: Annotated[Shape, typer.Option(help="The shape of the network; its weights are random.")] = Shape.LLADA,
    tokens: Annotated[int, typer.Option(min=32, help="Tokens of the text.")] = 512,
    prompt: Annotated[int, typer.Option(min=1, help="So many of them are given: filling begins in the middle.")] = 240,
    forwards: Annotated[int, typer.Option(min=2, help="Forwards that are measured, one token each.")] = 64,
    each: Annotated[int, typer.Option(min=1, help="Caches of each family.")] = 1,
    threads: Annotated[int, typer.Option(min=1, help="Threads.")] = 1,
    json_file: Annotated[Path | None, typer.Option("--json", help="Also write the figures to this file.")] = None,
) -> None:
    """Fills a part of a text under every cache. Random weights say what that costs, and nothing of what it loses.

    Rows count as anchored for as long as their age allows: how fast random weights let them change means nothing.
    """
    with tempfile.TemporaryDirectory() as folder:
        directory = random_network(shape, Path(folder) / "model")
        model = TextModel(_unclustered(export_language_model(directory, Path(folder) / "bundle")), threads=threads)
        text = np.random.default_rng(0).integers(0, model.spec.mask_id, tokens)
        rows = [_figures(case, run, base) for case, run, base in _runs(model, text, prompt, forwards, each)]
    if json_file is not None:
        json_file.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n", encoding="utf-8")
    Console().print(_table(rows))


def _unclustered(bundle: TextBundle) -> TextBundle:
    """The bundle with a single cluster, whose rows never change."""
    layers = bundle.manifest.model.layers
    return bundle.with_clusters(ClustersSpec(1, (0, 0, 0), ((0.0,),) * layers, ((0.0,) * 5,) * layers))


def _runs(
    model: TextModel, text: np.ndarray, prompt: int, forwards: int, each: int
) -> list[tuple[CacheCase, ForcedRun, ForcedRun]]:
    cases = cache_cases((), each=each)
    samplers = [FullAttentionSampler(model, case.policy, UnmaskOptions()) for case in cases]
    for sampler in samplers:
        forced_run(sampler, text, prompt, forwards=3)  # graphs load
    runs = [forced_run(samplers[0], text, prompt, forwards=forwards)]
    runs += [forced_run(sampler, text, prompt, runs[0].order, forwards=forwards) for sampler in samplers[1:]]
    return [(case, run, runs[0]) for case, run in zip(cases, runs, strict=True)]


def _figures(case: CacheCase, run: ForcedRun, base: ForcedRun) -> CostFigures:
    return CostFigures(
        cache=", ".join(filter(None, (case.family, case.settings))),
        flops=run.tally.flops / run.tally.full_flops,
        cpu=run.cpu_s / base.cpu_s,
        wall=run.wall_s / base.wall_s,
        cpu_ms=1e3 * run.cpu_s / run.tally.forwards,
    )


def _table(rows: list[CostFigures]) -> Table:
    table = Table("cache", "FLOPs", "CPU time", "wall time", "CPU ms a forward")
    for row in rows:
        shares = (f"1 / {1 / share:.2f}" for share in (row.flops, row.cpu, row.wall))
        table.add_row(row.cache, *shares, f"{row.cpu_ms:.1f}")
    return table
