"""Texts of models in which all tokens see each other, and their approximate caches. Implement nothing here."""

from __future__ import annotations

__all__ = [
    # Texts
    "CacheErrors",
    "Denoising",
    "FilledText",
    "FullAttentionSampler",
    "Measure",
    "Reading",
    "RowsReport",
    "RowTally",
    "UnmaskOptions",
    "likeliest",
    "log_shares",
    "surest",
    # Caches
    "AnchoredCache",
    "BlockCache",
    "DelayedCache",
    "FocusCache",
    "Horizon",
    "Kept",
    "NoCache",
    "Pattern",
    "SimilarityCache",
    "find_clusters",
    "separator_ids",
    # Caches of your own
    "CachePolicy",
    "Canvas",
    "MemorylessPolicy",
    "Moment",
    "Planner",
    "RowPlan",
    # The parts
    "RowCost",
    "RowStates",
]

from retouch.text.full_attention._anchored import AnchoredCache
from retouch.text.full_attention._audit import CacheErrors, log_shares
from retouch.text.full_attention._block_cache import BlockCache, Kept
from retouch.text.full_attention._cost import RowCost
from retouch.text.full_attention._delayed import DelayedCache
from retouch.text.full_attention._denoising import Denoising, Reading, RowTally
from retouch.text.full_attention._filled import FilledText, RowsReport
from retouch.text.full_attention._find_clusters import find_clusters
from retouch.text.full_attention._focus import FocusCache, separator_ids
from retouch.text.full_attention._horizon import Horizon
from retouch.text.full_attention._no_cache import NoCache
from retouch.text.full_attention._patterns import Pattern
from retouch.text.full_attention._policy import CachePolicy, Canvas, MemorylessPolicy, Moment, Planner, RowPlan
from retouch.text.full_attention._sampler import FullAttentionSampler
from retouch.text.full_attention._similarity import SimilarityCache
from retouch.text.full_attention._states import RowStates
from retouch.text.full_attention._unmask import Measure, UnmaskOptions, likeliest, surest
