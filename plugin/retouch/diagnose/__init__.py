"""Finding out why a model misbehaves. Implement nothing here."""

from __future__ import annotations

__all__ = [
    "NonFinite",
    "first_non_finite",
]

from retouch.diagnose._non_finite import NonFinite, first_non_finite
