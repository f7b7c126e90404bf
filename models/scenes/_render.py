"""Scenes as pixels."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from retouch.models.scenes._scene import Scene, SceneObject
from retouch.models.scenes._vocabulary import SIDE, Shape

__all__ = ["render"]

_SQUARE = 0.88  # half a side over the radius; makes a square about as large as a circle
_TRIANGLE = 1.15  # from the middle to a corner
_HOLE = 0.5
_ARM = 1 / 3  # half the width of an arm of a cross

Distances = npt.NDArray[np.float64]


def render(scene: Scene) -> npt.NDArray[np.uint8]:
    """The scene as red, green and blue, uint8 ``[64, 64, 3]``, edges smoothed over a pixel."""
    image = np.empty((SIDE, SIDE, 3))
    image[:] = scene.background.rgb
    for one in scene.objects:
        cover = np.clip(0.5 - _outside(one), 0, 1)[:, :, None]
        image += cover * (np.array(one.colour.rgb) - image)
    return np.rint(image).astype(np.uint8)


def _outside(one: SceneObject) -> Distances:
    """How far every pixel is outside the object's outline, in pixels; negative inside."""
    y, x = np.ogrid[:SIDE, :SIDE]
    dy, dx = y + 0.5 - one.centre[0], x + 0.5 - one.centre[1]
    radius = one.radius
    match one.shape:
        case Shape.CIRCLE:
            return _distance(dy, dx) - radius
        case Shape.SQUARE:
            return _box(dy, dx, _SQUARE * radius, _SQUARE * radius)
        case Shape.TRIANGLE:
            sides: Distances = np.maximum(dy, np.abs(dx) * np.sqrt(0.75) - dy / 2)
            return sides - _TRIANGLE * radius / 2
        case Shape.RING:
            distance = _distance(dy, dx)
            return np.maximum(distance - radius, _HOLE * radius - distance)
        case Shape.CROSS:
            return np.minimum(_box(dy, dx, radius, _ARM * radius), _box(dy, dx, _ARM * radius, radius))


def _distance(dy: Distances, dx: Distances) -> Distances:
    distance: Distances = np.hypot(dy, dx)
    return distance


def _box(dy: Distances, dx: Distances, height: float, width: float) -> Distances:
    return np.maximum(np.abs(dy) - height, np.abs(dx) - width)
