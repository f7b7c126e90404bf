"""Conditions that an edit cannot change: those of tokens that edits leave as the base run computed them."""

from __future__ import annotations

from collections.abc import Mapping

from retouch.bundle import EditGraphSpec, Manifest
from retouch.engines import Value
from retouch.errors import FeedError


def check_conditions(
    manifest: Manifest, spec: EditGraphSpec, kept: Mapping[str, Value], feeds: Mapping[str, Value]
) -> None:
    """Refuses another condition that would have no effect in an edit.

    Args:
        manifest: the bundle's manifest.
        spec: the edit graph.
        kept: the base run's feeds.
        feeds: the edit's; a feed that did not change is the very value that the run has.

    Raises:
        FeedError: a condition changed that only frozen tokens depend on.
    """
    if not any(grid.joint is not None and not grid.joint.recomputed for grid in manifest.grids):
        return
    read = {manifest.editable.input, *spec.conditions}
    changed = [name for name, value in feeds.items() if value is not kept[name] and name not in read]
    if changed:
        raise FeedError(
            f"Expected the base run's {', '.join(map(repr, changed))}, got another: it conditions text tokens, which "
            "edits of this bundle leave as the base run computed them. Make a base run with it, or export the model "
            "with text=recompute (retouch export --text recompute)."
        )
