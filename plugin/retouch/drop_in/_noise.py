"""Whether a sampling loop starts from the noise that the recording started from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retouch.bundle import Manifest
from retouch.errors import FeedError

__all__ = ["check_noise"]

_LEAST_CORRELATION = 0.5
"""Other noise correlates not at all; an initial image that changed somewhere moves its latents a little everywhere."""
_FEWEST = 32
"""Fewer numbers may correlate by chance."""


def check_noise(
    manifest: Manifest, steps: Sequence[str], region: NDArray[np.bool_], recorded: NDArray[Any], given: NDArray[Any]
) -> None:
    """Raise a FeedError if the first call of a sampling loop has another start than the recording's first call.

    Args:
        manifest: the bundle's manifest.
        steps: the names of the inputs that change from step to step; without any there is no loop.
        region: the positions that the edit is to change.
        recorded: the editable input of the recording's first call.
        given: that of the edit's first call.
    """
    if not steps or not np.issubdtype(recorded.dtype, np.floating):
        return
    axes = manifest.editable.axes
    before, after = (
        np.moveaxis(array, axes, range(-len(axes), 0))[..., ~region].ravel().astype(np.float64)
        for array in (recorded, given)
    )
    if before.size < _FEWEST or not before.std() or not after.std():
        return
    correlation = float(np.corrcoef(before, after)[0, 1])
    if correlation < _LEAST_CORRELATION:
        raise FeedError(
            f"Expected the edit to start from the recording's {manifest.editable.input!r} outside of the region, got "
            f"another (correlation {correlation:.2f}). An edit repeats the recording: pass the same seed or generator, "
            "and the same initial image, or record again."
        )
