"""What centred squares of an image cost under two policies, beside the full model."""

from __future__ import annotations

__all__ = ["POLICIES", "SquareCost", "measure_squares"]

from retouch.validation.squares._measure import POLICIES, SquareCost, measure_squares
