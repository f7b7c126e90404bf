"""Checks of a bundle against independent references."""

from __future__ import annotations

from retouch.export.verify.checks import TOLERANCES, Verifier
from retouch.export.verify.example_feeds import example_feeds
from retouch.export.verify.masked_reference import masked_reference

__all__ = ["TOLERANCES", "Verifier", "example_feeds", "masked_reference"]
