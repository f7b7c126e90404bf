"""Edits of scenes: one object gets another colour, another shape, or goes."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from enum import Enum
from typing import TypeVar

import numpy as np

from retouch.models.scenes import Colour, Scene, SceneObject, Shape, render, unseen_scenes
from retouch.region import Region

_SEED = 7
_MARGIN = 2
_Member = TypeVar("_Member", Colour, Shape)


class Kind(Enum):
    """What happens to an object."""

    RECOLOUR = "another colour"
    RESHAPE = "another shape"
    REMOVE = "removed"


@dataclass(frozen=True)
class Case:
    """An edit of a scene.

    Attributes:
        kind: what happens.
        before: the scene that is generated.
        after: the scene that the edit asks for.
        place: the object of ``before`` that is edited.
        region: the box around it, in pixels.
        seed: seed of the noise.
    """

    kind: Kind
    before: Scene
    after: Scene
    place: SceneObject
    region: Region
    seed: int

    def is_shown_by(self, read: Scene) -> bool:
        """Whether a scene that was read has, at the object's place, what the edit asks for."""
        wanted, got = (_at(scene, self.place) for scene in (self.after, read))
        if wanted is None or got is None:
            return wanted is got
        return (wanted.shape, wanted.colour) == (got.shape, got.colour)


def draw_cases(count: int) -> list[Case]:
    """Edits of scenes that training has not seen, of all kinds in turn; always the same."""
    rng = np.random.default_rng(_SEED)
    kinds = list(Kind)
    return [_case(kinds[i % len(kinds)], scene, rng, i) for i, scene in enumerate(unseen_scenes(count))]


def _case(kind: Kind, scene: Scene, rng: np.random.Generator, seed: int) -> Case:
    number = int(rng.integers(len(scene.objects)))
    one = scene.objects[number]
    others = list(scene.objects)
    if kind is Kind.RECOLOUR:
        others[number] = replace(one, colour=_another(one.colour, rng))
    elif kind is Kind.RESHAPE:
        others[number] = replace(one, shape=_another(one.shape, rng))
    else:
        del others[number]
    return Case(kind, scene, Scene(tuple(others), scene.background), one, _box(scene, one), seed)


def _box(scene: Scene, one: SceneObject) -> Region:
    """The pixels that an object of that size may cover in the middle of its cell, and a margin."""
    shape = render(scene).shape[:2]
    reach = math.ceil(one.size.radius) + _MARGIN
    middle = [int(part) for part in one.place.centre]
    first = (max(0, part - reach) for part in middle)
    last = (min(size, part + reach) for part, size in zip(middle, shape, strict=True))
    return Region.from_boxes([(*first, *last)], shape=shape)


def _another(one: _Member, rng: np.random.Generator) -> _Member:
    others = [member for member in type(one) if member is not one]
    return others[int(rng.integers(len(others)))]


def _at(scene: Scene, one: SceneObject) -> SceneObject | None:
    return next((other for other in scene.objects if other.place is one.place), None)
