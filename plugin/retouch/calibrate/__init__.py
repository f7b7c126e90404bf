"""Measures where an edit graph stops being faster than the full model. Implement nothing here."""

from __future__ import annotations

__all__ = [
    # Break-even
    "calibrate",
    "crossing",
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
from retouch.calibrate._inputs import block_region, sample_feeds
from retouch.calibrate._timing import Sample, interleaved
