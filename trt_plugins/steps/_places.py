"""Rows and neighbours of the levels of a UNet for a region."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retouch.trt_plugins.steps._kernels import Table

__all__ = ["Level", "levels"]

Mask = NDArray[np.bool_]
_TAPS = [(y, x) for y in (-1, 0, 1) for x in (-1, 0, 1)]


@dataclass(frozen=True)
class Level:
    """A level.

    Attributes:
        index: the active rows [M].
        mask: which rows are active [N].
        same: neighbours of a 3x3 convolution within the level.
        down: of one with stride 2 that gives this level's rows from those of the level above, if there is one.
        up: of one that gives this level's rows from those of the level below, each taken four times, if there is one.
    """

    index: Any
    mask: Any
    same: Table
    down: Table | None
    up: Table | None


def levels(active: Mask, count: int, torch: Any, device: str) -> list[Level]:  # noqa: ANN401  (PyTorch is optional)
    """The levels of a region; a coarse position is active if any of its four fine ones is."""
    masks = [active]
    for _ in range(count - 1):
        height, width = masks[-1].shape
        masks.append(np.asarray(masks[-1].reshape(height // 2, 2, width // 2, 2).any((1, 3)), np.bool_))

    def table(source: Mask, target: Mask, mapped: Callable[[NDArray[np.int64]], NDArray[np.int64]]) -> Table:
        halo, neighbours = _neighbours(source, target, mapped)
        return Table(torch.from_numpy(halo).to(device), torch.from_numpy(neighbours).to(device))

    found = []
    for number, mask in enumerate(masks):
        index = torch.from_numpy(np.flatnonzero(mask)).to(device)
        same = table(mask, mask, lambda place: place)
        down = table(masks[number - 1], mask, lambda place: place) if number else None
        up = table(masks[number + 1], mask, lambda place: place // 2) if number + 1 < count else None
        found.append(Level(index, torch.from_numpy(np.ascontiguousarray(mask).reshape(-1)).to(device), same, down, up))
    return found


def _neighbours(
    source: Mask, target: Mask, mapped: Callable[[NDArray[np.int64]], NDArray[np.int64]]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The halo and the neighbours of the active rows of a target, in a source of another size.

    Args:
        source: the active positions that are read.
        target: the active positions that are computed.
        mapped: the places in the source for places along an axis of the grid that the taps step over.
    """
    stride = max(1, source.shape[0] // target.shape[0])
    inside = np.array(target.shape) * stride
    places = np.argwhere(target)[:, None] * stride + np.array(_TAPS)
    there = ((places >= 0) & (places < inside)).all(-1)
    read = mapped(np.clip(places, 0, inside - 1)) @ np.array([source.shape[1], 1])
    flat = source.reshape(-1)
    halo = np.unique(read[there & ~flat[read]])
    numbers = np.cumsum(flat) - 1
    from_halo = flat.sum() + np.searchsorted(halo, read)
    pad = flat.sum() + len(halo)
    return halo, np.where(there, np.where(flat[read], numbers[read], from_halo), pad).astype(np.int64)
