"""Edits and what they are compared with, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from retouch.validation.generations._cases import Case
from retouch.validation.generations._quality import Outcome

__all__ = ["draw_sheet"]

_TITLES = ("generated", "edited", "full model, latents frozen", "generated again")
_MOST = 6


def draw_sheet(path: Path, cases: Sequence[Case], outcomes: Sequence[Outcome]) -> None:
    """Writes the first cases as rows: base, edit, inpainting by the full model, generated again; the region framed."""
    import numpy as np
    from matplotlib.figure import Figure
    from matplotlib.patches import Rectangle

    shown = list(zip(cases, outcomes, strict=True))[:_MOST]
    figure = Figure(figsize=(2 * len(_TITLES), 2.2 * len(shown)), dpi=70, layout="constrained")
    panels = figure.subplots(len(shown), len(_TITLES), squeeze=False)
    for row, (case, outcome) in zip(panels, shown, strict=True):
        (top, left), (bottom, right) = (end(np.argwhere(case.region.mask), 0) for end in (np.min, np.max))
        for panel, image, title in zip(row, outcome.images, _TITLES, strict=True):
            panel.imshow(image, interpolation="nearest")
            panel.set_axis_off()
            panel.set_title(title, fontsize=7)
        frame = Rectangle((left - 0.5, top - 0.5), right - left + 1, bottom - top + 1, fill=False, linewidth=0.8)
        frame.set_edgecolor("white")
        row[0].add_patch(frame)
        row[1].set_title(f"edited: {case.kind.value}", fontsize=7)
    figure.savefig(path)
