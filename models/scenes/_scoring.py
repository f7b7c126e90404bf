"""How much of a caption an image shows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from retouch.models.scenes._scene import Scene, SceneObject

__all__ = ["Score", "score_scenes"]

_OF_OBJECTS = ("shape", "colour", "size")


@dataclass(frozen=True)
class Score:
    """How much of the captions images show.

    Attributes:
        right: attributes that are as asked for, by kind; an object has a place, a shape, a colour and a size, and at
            a wrong place none of them is right.
        asked: attributes that were asked for, by kind.
        extra: objects at places where none was asked for.
        complete: images that show all that was asked for and nothing else.
        images: images in all.
    """

    right: Counter[str]
    asked: Counter[str]
    extra: int
    complete: int
    images: int

    @property
    def accuracy(self) -> float:
        """Right attributes over those asked for; an extra object counts as one attribute that is not right."""
        return self.right.total() / (self.asked.total() + self.extra)

    def of(self, kind: str) -> float:
        """The share of right attributes of one kind."""
        return self.right[kind] / self.asked[kind]


def score_scenes(pairs: Iterable[tuple[Scene, Scene]]) -> Score:
    """The score of pairs of what was asked for and what was read."""
    right: Counter[str] = Counter()
    asked: Counter[str] = Counter()
    extra = complete = images = 0
    for wanted, got in pairs:
        judged = list(_judged(wanted, got))
        asked.update(kind for kind, _ in judged)
        right.update(kind for kind, is_right in judged if is_right)
        more = len({one.place for one in got.objects} - {one.place for one in wanted.objects})
        extra += more
        complete += not more and all(is_right for _, is_right in judged)
        images += 1
    return Score(right, asked, extra, complete, images)


def _judged(wanted: Scene, got: Scene) -> Iterator[tuple[str, bool]]:
    yield "background", wanted.background is got.background
    there = {one.place: one for one in got.objects}
    for one in wanted.objects:
        yield "place", one.place in there
        for kind in _OF_OBJECTS:
            yield kind, _same(one, there.get(one.place), kind)


def _same(wanted: SceneObject, got: SceneObject | None, kind: str) -> bool:
    return got is not None and getattr(wanted, kind) is getattr(got, kind)
