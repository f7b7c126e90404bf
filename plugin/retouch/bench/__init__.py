"""Times edits against the full model, and measures memory, start-up and sizes. Implement nothing here."""

from __future__ import annotations

__all__ = [
    # Texts
    "CacheMeasurement",
    "TextMeasurement",
    "measure_caches",
    "measure_text",
    # Time
    "DEFAULT_AREAS",
    "Measurement",
    "box_region",
    "measure",
    # Memory, start-up, sizes
    "Footprint",
    "Probe",
    "Resident",
    "measure_footprint",
    "resident",
    # What both compare with
    "check_original",
]

from retouch.bench._box import box_region
from retouch.bench._caches import CacheMeasurement, measure_caches
from retouch.bench._footprint import Footprint, measure_footprint
from retouch.bench._measure import DEFAULT_AREAS, Measurement, measure
from retouch.bench._original import check_original
from retouch.bench._probe import Probe
from retouch.bench._resident import Resident, resident
from retouch.bench._text import TextMeasurement, measure_text
