"""How GroupNorm sees an edit."""

from __future__ import annotations

from typing import Literal, get_args

from retouch.bundle import EditGraphSpec, Manifest
from retouch.errors import RetouchError

Moments = Literal["cached", "corrected"]
"""``cached``: the base run's moments; ``corrected``: these moments, corrected by what the active rows change."""

GroupNormMode = Literal["auto", "cached", "corrected"]
"""A choice of moments, or ``auto``: per edit those that are expected to err less."""

MOMENTS: tuple[Moments, ...] = get_args(Moments)
GROUP_NORM_MODES: tuple[GroupNormMode, ...] = get_args(GroupNormMode)


def checked_mode(mode: str) -> GroupNormMode:
    """The mode of that name."""
    for known in GROUP_NORM_MODES:
        if mode == known:
            return known
    raise RetouchError(
        f"Expected GroupNorm moments to be one of {', '.join(map(repr, GROUP_NORM_MODES))}, got {mode!r}."
    )


def mode_of_generations(manifest: Manifest) -> GroupNormMode:
    """How GroupNorm sees edits of generated images, unless somebody says otherwise: measured in docs/group-norm.md.

    Another prompt moves what a denoiser's GroupNorms see, which ``cached`` moments miss; ``auto`` knows that where the
    bundle was calibrated. What only decodes answers an edit with all its rows, which ``corrected`` moments miss;
    calibrations with content from anywhere do not foresee that.
    """
    editable = manifest.editable.input
    prompted = any(spec.name != editable and len(spec.shape) > 1 for spec in manifest.inputs)
    if not prompted:
        return "cached"
    return "corrected" if manifest.moments is None else "auto"


def edit_spec(manifest: Manifest, moments: Moments) -> tuple[str, EditGraphSpec]:
    """The key and the edit graph that serve those moments; a model without GroupNorm has one graph for both."""
    key = moments if moments in manifest.edits else "cached"
    return key, manifest.edits[key]


def read_ids(spec: EditGraphSpec) -> frozenset[str]:
    """The cacheables that an edit graph and what is prepared for it read."""
    return frozenset((*spec.cached, *spec.prep_cached))


def kept_ids(manifest: Manifest, mode: GroupNormMode) -> tuple[str, ...]:
    """The cacheables that base runs keep for edits in that mode; ``corrected`` edits read more, so it serves both.

    ``auto`` keeps for both where it has a choice, which takes a calibrated bundle.
    """
    both = mode == "corrected" or (mode == "auto" and manifest.moments is not None)
    modes: tuple[Moments, ...] = MOMENTS if both else ("cached",)
    read = frozenset[str]().union(*(read_ids(edit_spec(manifest, one)[1]) for one in modes))
    return tuple(spec.id for spec in manifest.cacheables if spec.id in read)
