"""The contact sheet: the base, and what became of it."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from retouch.region import Region

__all__ = ["Panel", "draw_sheet"]

Panel = tuple[str, NDArray[np.uint8], Region | None]
"""A title, an image, and the region that was edited."""

_COLUMNS = 4


def draw_sheet(path: Path, panels: Sequence[Panel]) -> None:
    """Writes the images with their titles; the edited region has an outline."""
    from matplotlib.figure import Figure

    rows = -(-len(panels) // _COLUMNS)
    figure = Figure(figsize=(2.2 * _COLUMNS, 2.5 * rows), dpi=80, layout="constrained")
    axes = list(figure.subplots(rows, _COLUMNS, squeeze=False).flat)
    for place in axes:
        place.set_axis_off()
    for place, (title, image, region) in zip(axes, panels, strict=False):
        place.imshow(image, interpolation="nearest")
        place.set_title("\n".join(textwrap.wrap(title, 26)), fontsize=8)
        if region is not None:
            ys, xs = np.nonzero(region.mask)
            box = xs.min() - 0.5, ys.min() - 0.5, xs.max() + 0.5, ys.max() + 0.5
            place.plot(
                [box[0], box[2], box[2], box[0], box[0]], [box[1], box[1], box[3], box[3], box[1]], "w--", lw=0.8
            )
    figure.savefig(path)
