"""Whether memory stays flat over many edits."""

from __future__ import annotations

__all__ = ["Sample", "growth", "soak"]

from retouch.validation.soak._soak import Sample, growth, soak
