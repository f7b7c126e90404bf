"""Hillshades before and after an edit, and the difference."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retouch.region import Region
from retouch.validation.terrain import to_heights


def draw(path: Path, title: str, before: NDArray[Any], after: NDArray[Any], region: Region) -> None:
    """Writes one picture with three panels; the outline of the region is drawn into each."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt
    from matplotlib.colors import LightSource

    old, new = (to_heights(values, zero_floor=False)[0] for values in (before, after))
    light = LightSource(azdeg=315, altdeg=40)
    figure, axes = plt.subplots(1, 3, figsize=(12, 4.3), layout="constrained")
    for panel, heights, name in zip(axes[:2], (old, new), ("before", "after"), strict=True):
        panel.imshow(light.hillshade(heights, vert_exag=2.0), cmap="gray", vmin=0, vmax=1)
        panel.set_title(name)
    change = new - old
    limit = float(np.abs(change).max()) or 1.0
    image = axes[2].imshow(change, cmap="RdBu", vmin=-limit, vmax=limit)
    axes[2].set_title("difference, m")
    figure.colorbar(image, ax=axes[2], shrink=0.8)
    for panel in axes:
        panel.contour(region.mask, levels=[0.5], colors="tab:orange", linewidths=1.0)
        panel.set_axis_off()
    figure.suptitle(title)
    figure.savefig(path, dpi=80)
    plt.close(figure)
