"""Times edits of several sizes against the full model. Implement nothing here."""

from __future__ import annotations

__all__ = ["DEFAULT_AREAS", "Measurement", "measure"]

from retouch.bench._measure import DEFAULT_AREAS, Measurement, measure
