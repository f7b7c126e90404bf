"""Regions from options."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from retouch.cli._feeds import IMAGES, read_npy
from retouch.cli._images import read_mask
from retouch.errors import FeedError, RegionError
from retouch.region import Region

REGION_HELP = (
    "box:Y0,X0,Y1,X1 (rows before columns; Y1 and X1 are excluded; for tokens and audio "
    "box:START,STOP; for video box:T0,Y0,X0,T1,Y1,X1) or full. "
    "May be repeated; boxes, --mask and --rows add up."
)
ROWS_HELP = "Row-major numbers of positions, like 3,5,10-20; both ends of a range are included."
MASK_HELP = "A .npy file of dtype bool, or a .png file that is brighter than half of white where to edit."


@dataclasses.dataclass(frozen=True)
class RegionOptions:
    """What was asked for."""

    regions: Sequence[str]
    mask: Path | None
    rows: str | None
    policy: str
    dilate: int | None

    def region(self, shape: Sequence[int]) -> Region:
        """The union of what was asked for, on an editable grid of that shape.

        Raises:
            RegionError: nothing was asked for, or something that does not fit.
        """
        masks = [_named(text, shape).mask for text in self.regions]
        if self.mask is not None:
            masks.append(_mask(self.mask, shape))
        if self.rows is not None:
            masks.append(Region.from_rows(_numbers(self.rows, math.prod(shape)), shape).mask)
        if not masks:
            raise RegionError("Expected a region, got none. Give one with --region, --mask or --rows.")
        region = Region.from_mask(np.logical_or.reduce(masks), self.policy)
        if self.dilate is None:
            return region
        return Region.from_mask(region.mask, dataclasses.replace(region.policy, dilation=self.dilate))


def _named(text: str, shape: Sequence[int]) -> Region:
    kind, _, numbers = text.partition(":")
    if text == "full":
        return Region.full(shape)
    corners = {1: "START,STOP", 2: "Y0,X0,Y1,X1", 3: "T0,Y0,X0,T1,Y1,X1"}.get(len(shape), "FIRST...,STOP...")
    if kind != "box" or not re.fullmatch(r"\s*-?\d+\s*(,\s*-?\d+\s*)*", numbers):
        raise RegionError(
            f"Expected --region box:{corners} or full on the grid {tuple(shape)}, got {text!r}. "
            "Numbers are positions of the editable input."
        )
    return Region.from_boxes([[int(number) for number in numbers.split(",")]], shape)


def _mask(path: Path, shape: Sequence[int]) -> NDArray[np.bool_]:
    try:
        mask = read_mask(path) if path.suffix.lower() in IMAGES else Region.from_mask(read_npy(path)).mask
    except FeedError as error:
        raise RegionError(f"The mask cannot be read. {error}") from error
    if mask.shape != tuple(shape):
        raise RegionError(
            f"Expected the mask {path} to have the shape {tuple(shape)} of the editable grid, got {mask.shape}. "
            "Resize it, and leave batch and channel axes out."
        )
    return mask


def _numbers(text: str, rows: int) -> NDArray[np.int64]:
    numbers: set[int] = set()
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d+)\s*(?:-\s*(\d+)\s*)?", part)
        if match is None:
            raise RegionError(f"Expected --rows like 3,5,10-20, got {part!r} in {text!r}.")
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first:
            raise RegionError(f"Expected ranges in --rows to go up, got {part!r}. Write {last}-{first}.")
        if last >= rows:  # before a slip of the finger fills the memory
            raise RegionError(f"Expected --rows among the rows 0 to {rows - 1} of the grid, got {part!r}.")
        numbers.update(range(first, last + 1))
    return np.array(sorted(numbers), np.int64)
