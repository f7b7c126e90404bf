"""How GroupNorm sees an edit."""

from __future__ import annotations

from typing import Literal, get_args

from retouch.bundle import EditGraphSpec, Manifest
from retouch.errors import RetouchError

GroupNormMode = Literal["cached", "corrected"]
"""``cached``: the base run's moments; ``corrected``: these moments, corrected by what the active rows change."""

GROUP_NORM_MODES: tuple[GroupNormMode, ...] = get_args(GroupNormMode)


def checked_mode(mode: str) -> GroupNormMode:
    """The mode of that name."""
    for known in GROUP_NORM_MODES:
        if mode == known:
            return known
    raise RetouchError(f"Expected group_norm to be {' or '.join(map(repr, GROUP_NORM_MODES))}, got {mode!r}.")


def edit_spec(manifest: Manifest, mode: GroupNormMode) -> tuple[str, EditGraphSpec]:
    """The key and the edit graph that serve a mode; a model without GroupNorm has one graph for both modes."""
    key = mode if mode in manifest.edits else "cached"
    return key, manifest.edits[key]
