"""The scene of the story, and its edits."""

from __future__ import annotations

from dataclasses import dataclass

from retouch.models.scenes import parse_caption
from retouch.region import Region

__all__ = ["BASE", "CHAPTERS", "SLIDER", "Chapter", "around"]

_MARGIN = 8  # pixels around the middle of a small object: 16x16 of 64x64 are 6.25 % of the area

_RED = "a small red circle on the left"
_BLUE = "a small blue square at the top right"
BASE = f"{_RED}, {_BLUE}, a large yellow cross at the bottom, grey background"
"""What the base shows."""


@dataclass(frozen=True)
class Chapter:
    """One edit.

    Attributes:
        name: what it does.
        place: the caption of the object whose surroundings are the region, with a background.
        prompt: what is asked for there.
    """

    name: str
    place: str
    prompt: str


CHAPTERS = (
    Chapter("another colour", f"{_RED}, grey background", BASE.replace("red", "green")),
    Chapter("removed", f"{_BLUE}, grey background", BASE.replace(f"{_BLUE}, ", "")),
    Chapter("another shape", f"{_RED}, grey background", BASE.replace("circle", "square")),
)
SLIDER = (BASE, BASE.replace("red", "purple"), (0.25, 0.5, 0.75, 1.0))
"""From, to, and how far: strengths of one direction."""


def around(caption: str) -> Region:
    """The pixels around the middle of a caption's first object."""
    y, x = (round(value) for value in parse_caption(caption).objects[0].centre)
    return Region.from_boxes([(y - _MARGIN, x - _MARGIN, y + _MARGIN, x + _MARGIN)], shape=(64, 64))
