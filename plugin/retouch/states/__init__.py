"""What base runs keep, under their run ids. Implement nothing here."""

from __future__ import annotations

__all__ = [
    # Where states are kept
    "HostTier",
    "StateTier",
    # Whose they are
    "StateStore",
]

from retouch.states._store import StateStore
from retouch.states._tier import HostTier, StateTier
