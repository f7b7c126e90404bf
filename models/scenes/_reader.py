"""Reads scenes back from pixels: parts that stand out, their moments, and tables. Nothing in it is learned."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from retouch.errors import FeedError
from retouch.models.scenes._render import render
from retouch.models.scenes._scene import Scene, SceneObject
from retouch.models.scenes._vocabulary import SIDE, Background, Colour, Place, Shape, Size

__all__ = ["read_scene"]

_CONTRAST = 45.0  # half the distance of the closest pair of a colour and a background
_LEAST = 12  # pixels of the smallest part that counts
_WIDEST = 26  # pixels; what is wider is several objects that touch
_MIDDLE_RADIUS = (Size.SMALL.radius + Size.LARGE.radius) / 2

Mask = npt.NDArray[np.bool_]
Cover = npt.NDArray[np.float64]
_Tinted = TypeVar("_Tinted", Colour, Background)


def read_scene(image: npt.NDArray[np.uint8]) -> Scene:
    """The scene that an image shows, uint8 ``[64, 64, 3]``; objects row by row of their places, at most one in each.

    Raises:
        FeedError: if the image has another shape or dtype.
    """
    if image.shape != (SIDE, SIDE, 3) or image.dtype != np.uint8:
        raise FeedError(
            f"Scenes are uint8 images of ({SIDE}, {SIDE}, 3); got {image.dtype} of {image.shape}. Convert the image."
        )
    pixels = image.astype(np.float64)
    behind = np.median(pixels.reshape(-1, 3), axis=0)
    strength = np.linalg.norm(pixels - behind, axis=2)
    found: dict[Place, tuple[int, SceneObject]] = {}
    for part in _parts(strength > _CONTRAST):
        one = _read_object(pixels, behind, strength, part)
        size = int(part.sum())
        if one.place not in found or found[one.place][0] < size:
            found[one.place] = size, one
    objects = tuple(found[place][1] for place in Place if place in found)
    return Scene(objects, _nearest(Background, behind))


def _parts(mask: Mask) -> Iterator[Mask]:
    """The connected parts of a mask, those that are too wide cut at the borders of cells."""
    left = mask.copy()
    while left.any():
        part = _flood(left, np.unravel_index(int(left.argmax()), left.shape))
        left &= ~part
        rows, columns = np.nonzero(part)
        if max(np.ptp(rows), np.ptp(columns)) < _WIDEST:
            pieces = [part]
        else:
            pieces = [part & (_cells() == index) for index in range(len(Place))]
        yield from (piece for piece in pieces if piece.sum() >= _LEAST)


def _flood(mask: Mask, seed: tuple[np.intp, ...]) -> Mask:
    part = np.zeros_like(mask)
    part[seed] = True
    while True:
        grown = part.copy()
        grown[1:] |= part[:-1]
        grown[:-1] |= part[1:]
        grown[:, 1:] |= part[:, :-1]
        grown[:, :-1] |= part[:, 1:]
        grown &= mask
        if (grown == part).all():
            return part
        part = grown


def _read_object(pixels: Cover, behind: Cover, strength: Cover, part: Mask) -> SceneObject:
    strong = part & (strength >= np.median(strength[part]))
    tint = np.median(pixels[strong], axis=0)
    cover = _grown(part) * np.clip((pixels - behind) @ (tint - behind) / np.square(tint - behind).sum(), 0, 1)
    area, y, x, features = _moments(cover)
    shape = min(Shape, key=lambda shape: float(np.abs(features - _template(shape)[1]).sum()))
    radius = np.sqrt(area / _template(shape)[0])
    return SceneObject(
        shape,
        _nearest(Colour, tint),
        Size.SMALL if radius < _MIDDLE_RADIUS else Size.LARGE,
        min(Place, key=lambda place: float(np.hypot(place.centre[0] - y, place.centre[1] - x))),
    )


def _moments(cover: Cover) -> tuple[float, float, float, Cover]:
    """Area, middle (y, x), and what is characteristic of the outline whatever its size.

    These are the spread over the area (largest for rings), and how much of the outer mass repeats three and four times
    around the middle (triangles; squares with negative and crosses with positive sign).
    """
    rows, columns = np.mgrid[:SIDE, :SIDE] + 0.5
    area = cover.sum()
    y, x = (cover * rows).sum() / area, (cover * columns).sum() / area
    z = (columns - x) + 1j * (rows - y)
    distance = np.abs(z)
    threefold = np.abs((cover * z**3).sum()) / (cover * distance**3).sum()
    fourfold = (cover * z**4).sum().real / (cover * distance**4).sum()
    spread = (cover * distance**2).sum() / area**2
    return float(area), float(y), float(x), np.array([4 * spread, threefold, fourfold])


@cache
def _template(shape: Shape) -> tuple[float, Cover]:
    """The area of a shape of radius one, and its features."""
    one = SceneObject(shape, Colour.WHITE, Size.LARGE, Place.CENTRE)
    image = render(Scene((one,), Background.NAVY)).astype(np.float64)
    behind, tint = np.array(Background.NAVY.rgb), np.array(Colour.WHITE.rgb)
    area, _, _, features = _moments((image - behind) @ (tint - behind) / np.square(tint - behind).sum())
    return area / one.radius**2, features


def _grown(part: Mask) -> Mask:
    """The part and its neighbours, which hold the rest of its smoothed edge."""
    grown = part.copy()
    grown[1:] |= part[:-1]
    grown[:-1] |= part[1:]
    grown[:, 1:] |= grown[:, :-1].copy()
    grown[:, :-1] |= grown[:, 1:].copy()
    return grown


@cache
def _cells() -> npt.NDArray[np.int64]:
    """The place of every pixel, as its number."""
    line = np.arange(SIDE) * 3 // SIDE
    return line[:, None] * 3 + line[None, :]


def _nearest(kind: type[_Tinted], tint: Cover) -> _Tinted:
    return min(kind, key=lambda member: float(np.linalg.norm(tint - member.rgb)))
