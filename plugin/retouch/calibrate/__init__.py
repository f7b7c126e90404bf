"""Measures the break-even of a bundle, and what its GroupNorm modes and shorter weights err. Implement nothing here."""

from __future__ import annotations

__all__ = [
    # Break-even
    "calibrate",
    "crossing",
    # GroupNorm modes
    "MomentExample",
    "calibrate_moments",
    "rank_correlation",
    "relative_error",
    # Weights kept as shorter numbers
    "calibrate_weights",
    # What measurements need
    "Sample",
    "block_region",
    "interleaved",
    "open_full_model",
    "sample_feeds",
]

from retouch.calibrate._break_even import crossing
from retouch.calibrate._calibrate import calibrate
from retouch.calibrate._full_model import open_full_model
from retouch.calibrate._held_out import rank_correlation
from retouch.calibrate._inputs import block_region, sample_feeds
from retouch.calibrate._moment_edits import MomentExample
from retouch.calibrate._moments import calibrate_moments, relative_error
from retouch.calibrate._timing import Sample, interleaved
from retouch.calibrate._weights import calibrate_weights
