"""Which GroupNorm moments edits should take: what `auto` chooses and foresees, against what each mode errs."""

from __future__ import annotations

__all__ = [
    # What is measured
    "SUBJECTS",
    "Sample",
    "Study",
    "Subject",
    "Timing",
    "calibrate_subject",
    "run_study",
    "time_modes",
    # What is written
    "draw",
    "figures",
    "page",
]

from retouch.validation.moments._page import page
from retouch.validation.moments._picture import draw
from retouch.validation.moments._study import Sample, Study, Timing, calibrate_subject, run_study, time_modes
from retouch.validation.moments._subjects import SUBJECTS, Subject
from retouch.validation.moments._table import figures
