"""Times texts of models with full attention under caches, and audits them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TypedDict

from retouch.calibrate import Sample, interleaved
from retouch.text import TextModel
from retouch.text.full_attention import CachePolicy, FilledText, FullAttentionSampler, NoCache, UnmaskOptions

NO_CACHE = "no cache"


class CacheMeasurement(TypedDict):
    """What a cache comes to.

    Attributes:
        cache: its name.
        forwards: forwards of the model.
        cpu_s: CPU time of the process, median.
        wall_s: time on the clock, median.
        ratio: CPU time over that without a cache.
        flops: floating-point operations over those of the same forwards without a cache.
        oldest: the greatest age of anything that was used, in steps.
        same: share of the new tokens that are those without a cache.
        agreed: share of the choices, at every position that could be set, that are the model's own.
        divergence: mean divergence from the model's own distribution, in nats.
    """

    cache: str
    forwards: int
    cpu_s: float
    wall_s: float
    ratio: float
    flops: float
    oldest: int
    same: float
    agreed: float
    divergence: float


def measure_caches(
    model: TextModel,
    prompt: Sequence[int],
    length: int,
    caches: Mapping[str, CachePolicy],
    *,
    options: UnmaskOptions | None = None,
    repeats: int = 5,
    progress: Callable[[str], None] | None = None,
) -> list[CacheMeasurement]:
    """One text under every cache in turn, and without one, in one process; the first of each is audited, not timed.

    Ends are ignored, so that every text has the length that is asked for.

    Args:
        model: the model.
        prompt: the prompt's tokens.
        length: new tokens.
        caches: the caches by name.
        options: how masks are set.
        repeats: rounds that count, after the audited one.
        progress: called with a line before every round.
    """
    fixed = replace(options or UnmaskOptions(), stop_at_end=False)
    policies: dict[str, CachePolicy] = {NO_CACHE: NoCache(), **caches}
    samplers = {name: FullAttentionSampler(model, policy, fixed) for name, policy in policies.items()}
    if progress is not None:
        progress("audit")
    made = {name: sampler.generate(prompt, length, audit=True) for name, sampler in samplers.items()}
    ways = {name: partial(sampler.generate, prompt, length) for name, sampler in samplers.items()}
    times = interleaved(ways, repeats, warm_ups=0, progress=progress)
    return [_row(name, one, made[NO_CACHE], times[name], times[NO_CACHE]) for name, one in made.items()]


def _row(name: str, made: FilledText, exact: FilledText, times: Sample, plain: Sample) -> CacheMeasurement:
    report = made.report
    assert report.errors is not None
    return CacheMeasurement(
        cache=name,
        forwards=report.forwards,
        cpu_s=times.cpu_ms / 1e3,
        wall_s=times.wall_ms / 1e3,
        ratio=times.cpu_ms / plain.cpu_ms,
        flops=report.flops_ratio,
        oldest=report.max_staleness,
        same=float((made.tokens == exact.tokens)[made.prompt_tokens :].mean()),
        agreed=report.errors.agreed,
        divergence=report.errors.divergence,
    )
