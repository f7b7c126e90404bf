"""Scenes drawn at random, and which of them training never sees."""

from __future__ import annotations

import numpy as np

from retouch.models.scenes._scene import Scene, SceneObject
from retouch.models.scenes._vocabulary import Background, Colour, Place, Shape, Size

__all__ = ["draw_scene", "is_held_out", "training_scenes", "unseen_scenes"]

_MOST = 3  # objects
_OFFSET = 1.0
_STRETCH = 0.05
_HELD_OUT_SEED = 20_000


def is_held_out(one: SceneObject) -> bool:
    """Whether training never sees this combination of shape, colour and place: every eighth, spread evenly."""
    shape, colour, place = list(Shape).index(one.shape), list(Colour).index(one.colour), list(Place).index(one.place)
    return (colour + 3 * shape + 5 * place) % 8 == 0


def draw_scene(rng: np.random.Generator, count: int) -> Scene:
    """A scene of ``count`` objects at different places, in any order."""
    places = rng.permutation(len(Place))[:count]
    objects = tuple(_draw_object(rng, list(Place)[place]) for place in places)
    return Scene(objects, list(Background)[rng.integers(len(Background))])


def training_scenes(
    rng: np.random.Generator, count: int, odds: tuple[float, ...] = (1 / (_MOST + 1),) * (_MOST + 1)
) -> list[Scene]:
    """Scenes of up to three objects, none with a held-out combination; ``odds`` of no, one, two and three objects."""
    found: list[Scene] = []
    while len(found) < count:
        scene = draw_scene(rng, int(rng.choice(len(odds), p=odds)))
        if not any(map(is_held_out, scene.objects)):
            found.append(scene)
    return found


def unseen_scenes(count: int) -> tuple[Scene, ...]:
    """Scenes of one, two and three objects in turn, each with a held-out combination; always the same."""
    rng = np.random.default_rng(_HELD_OUT_SEED)
    found: list[Scene] = []
    while len(found) < count:
        scene = draw_scene(rng, 1 + len(found) % _MOST)
        if any(map(is_held_out, scene.objects)):
            found.append(scene)
    return tuple(found)


def _draw_object(rng: np.random.Generator, place: Place) -> SceneObject:
    shape, colour, size = rng.integers(len(Shape)), rng.integers(len(Colour)), rng.integers(len(Size))
    dy, dx = rng.uniform(-_OFFSET, _OFFSET, 2)
    stretch = float(rng.uniform(1 - _STRETCH, 1 + _STRETCH))
    return SceneObject(
        list(Shape)[shape], list(Colour)[colour], list(Size)[size], place, (float(dy), float(dx)), stretch
    )
