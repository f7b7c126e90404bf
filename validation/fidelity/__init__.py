"""How close edits come to a full recomputation, on the trained terrain model."""

from __future__ import annotations

__all__ = [
    # What is measured
    "Sample",
    "Study",
    "run_study",
    # What is written
    "draw_shift",
    "markdown",
]

from retouch.validation.fidelity._picture import draw_shift
from retouch.validation.fidelity._study import Sample, Study, run_study
from retouch.validation.fidelity._table import markdown
