"""Scenes: objects before a background, and the captions that describe them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TypeVar

from retouch.errors import FeedError
from retouch.models.scenes._vocabulary import Background, Colour, Place, Shape, Size

__all__ = ["Scene", "SceneObject", "parse_caption", "words"]

_Attribute = TypeVar("_Attribute", bound=Enum)


@dataclass(frozen=True)
class SceneObject:
    """One object of a scene.

    Attributes:
        shape: what it is.
        colour: its colour.
        size: its size.
        place: the cell it is in.
        offset: how far its middle is from the middle of the cell in pixels, y first. Captions do not tell.
        stretch: its radius over the radius of its size. Captions do not tell.
    """

    shape: Shape
    colour: Colour
    size: Size
    place: Place
    offset: tuple[float, float] = (0.0, 0.0)
    stretch: float = 1.0

    @property
    def phrase(self) -> str:
        """The object in words, such as ``a large red circle on the left``."""
        return f"a {self.size.value} {self.colour.value} {self.shape.value} {self.place.value}"

    @property
    def radius(self) -> float:
        """The radius of the outline in pixels."""
        return self.size.radius * self.stretch

    @property
    def centre(self) -> tuple[float, float]:
        """The middle of the object in pixels, y first."""
        y, x = self.place.centre
        return y + self.offset[0], x + self.offset[1]


@dataclass(frozen=True)
class Scene:
    """Objects at different places, and what is behind them."""

    objects: tuple[SceneObject, ...]
    background: Background

    @property
    def caption(self) -> str:
        """The scene in words, objects in their order."""
        return ", ".join([*(one.phrase for one in self.objects), f"{self.background.value} background"])


def words() -> tuple[str, ...]:
    """Every word of captions, sorted."""
    phrases = [member.value for kind in (Shape, Colour, Size, Place, Background) for member in kind]
    return tuple(sorted({word for phrase in [*phrases, "a background"] for word in phrase.split()}))


def parse_caption(caption: str) -> Scene:
    """The scene that a caption describes, objects in the middle of their cells.

    Raises:
        FeedError: if the caption has an unknown word, or is not built like ``Scene.caption``.
    """
    unknown = sorted(set(caption.replace(",", " ").split()) - set(words()))
    if unknown:
        raise FeedError(
            f"Captions use the words {', '.join(words())}; got {', '.join(map(repr, unknown))}. Say it in these."
        )
    *phrases, last = (part.strip() for part in caption.split(","))
    scene = Scene(
        tuple(map(_parse_object, phrases)), _member(Background, last.removesuffix("background").strip(), last)
    )
    if len({one.place for one in scene.objects}) < len(scene.objects):
        raise FeedError(f"Objects are at different places; got two at one place in {caption!r}. Move one of them.")
    return scene


def _parse_object(phrase: str) -> SceneObject:
    parts = phrase.split(maxsplit=4)
    if len(parts) != 5 or parts[0] != "a":
        raise FeedError(f"An object is described like 'a large red circle on the left'; got {phrase!r}.")
    _, size, colour, shape, place = parts
    return SceneObject(
        _member(Shape, shape, phrase),
        _member(Colour, colour, phrase),
        _member(Size, size, phrase),
        _member(Place, place, phrase),
    )


def _member(kind: type[_Attribute], word: str, phrase: str) -> _Attribute:
    try:
        return kind(word)
    except ValueError:
        choices = ", ".join(repr(member.value) for member in kind)
        raise FeedError(f"A {kind.__name__.lower()} is one of {choices}; got {word!r} in {phrase!r}.") from None
