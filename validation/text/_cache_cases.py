"""The caches that are compared, each at several prices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from retouch.text.full_attention import (
    AnchoredCache,
    BlockCache,
    CachePolicy,
    DelayedCache,
    FocusCache,
    Horizon,
    Kept,
    NoCache,
    Pattern,
    SimilarityCache,
)

__all__ = ["NO_CACHE", "CacheCase", "cache_cases"]

NO_CACHE = "no cache"


@dataclass(frozen=True)
class CacheCase:
    """A cache with its settings.

    Attributes:
        family: the method.
        settings: what sets it apart from others of its family.
        policy: the cache.
    """

    family: str
    settings: str
    policy: CachePolicy


def cache_cases(exempt: tuple[int, ...], *, each: int | None = None) -> tuple[CacheCase, ...]:
    """Every case; the first one is without a cache.

    Args:
        exempt: ids of tokens that focus always sees.
        each: so many of each family; ``None`` means all.
    """
    cases = [CacheCase(NO_CACHE, "", NoCache())]
    for family, policies in _families(exempt).items():
        chosen = list(policies.items())
        cases += [CacheCase(family, settings, policy) for settings, policy in chosen[:each]]
    return tuple(cases)


def _families(exempt: tuple[int, ...]) -> Mapping[str, Mapping[str, CachePolicy]]:
    """Per family its settings, those that show it best first."""
    return {
        "Fast-dLLM": {"dual": BlockCache(Kept.DUAL), "prefix": BlockCache(Kept.PREFIX)},
        "dKV-Cache": {
            "every 8, near 16": DelayedCache(8, window=16),
            "every 8": DelayedCache(8),
            "every 4": DelayedCache(4),
            "every 16": DelayedCache(16),
            "every 16, near 16": DelayedCache(16, window=16),
        },
        "dLLM-Cache": {
            "every 7, 25 %": SimilarityCache(),
            "every 7, 25 %, first layer whole": SimilarityCache(whole_layers=1),
            "every 14, 10 %": SimilarityCache(answer_interval=14, share=0.1),
            "every 14, 10 %, first layer whole": SimilarityCache(answer_interval=14, share=0.1, whole_layers=1),
        },
        "dLLM-Cache, near rows too": {
            "every 8, 2 %, near 16": SimilarityCache(8, 8, 0.02, near=16),
            "every 4, 2 %, near 16": SimilarityCache(4, 4, 0.02, near=16),
            "every 8, 10 %, near 16": SimilarityCache(8, 8, 0.1, near=16),
            "every 16, 2 %, near 16": SimilarityCache(16, 16, 0.02, near=16),
            "every 8, 2 %, wanted only": SimilarityCache(8, 8, 0.02, near=0),
        },
        "time-anchored": {
            "age 2": AnchoredCache(),
            "age 8": AnchoredCache(staleness=8),
            "age 2, near 0": AnchoredCache(near=0),
            "age 4": AnchoredCache(staleness=4),
            "age 8, tolerance 0.01": AnchoredCache(staleness=8, tolerance=0.01),
            "age 16": AnchoredCache(staleness=16),
        },
        "horizon": {
            "64, time-anchored, age 2": Horizon(AnchoredCache(), 64),
            "64, dLLM-Cache, every 4, 2 %, near 16": Horizon(SimilarityCache(4, 4, 0.02, near=16), 64),
            "64, no other cache": Horizon(NoCache(), 64),
            "64, Fast-dLLM, dual": Horizon(BlockCache(Kept.DUAL), 64),
            "32, time-anchored, age 2": Horizon(AnchoredCache(), 32),
            "128, time-anchored, age 2": Horizon(AnchoredCache(), 128),
            "64, dLLM-Cache, every 8, 2 %, near 16": Horizon(SimilarityCache(8, 8, 0.02, near=16), 64),
            "128, dLLM-Cache, every 4, 2 %, near 16": Horizon(SimilarityCache(4, 4, 0.02, near=16), 128),
        },
        "focus": {
            "window 32": FocusCache(exempt=exempt, revise=None),
            "window 64": FocusCache(window=64, exempt=exempt, revise=None),
            "window 16": FocusCache(window=16, exempt=exempt, revise=None),
            "window 32, nothing exempt": FocusCache(revise=None),
            "window 32, smoothed": FocusCache(exempt=exempt, revise=None, smoothing=0.1),
            "window 32, skip": FocusCache(pattern=Pattern.SKIP, exempt=exempt, revise=None),
            "window 32, tree": FocusCache(pattern=Pattern.TREE, exempt=exempt, revise=None),
        },
    }
