"""What scenes are made of, in words and in pixels."""

from __future__ import annotations

from enum import Enum
from typing import TypeAlias

__all__ = ["SIDE", "Background", "Colour", "Place", "Rgb", "Shape", "Size"]

Rgb: TypeAlias = tuple[int, int, int]

SIDE = 64  # pixels of a scene, either way
_CELL_CENTRES = (11.0, 32.0, 53.0)


class Shape(Enum):
    """What an object is."""

    CIRCLE = "circle"
    SQUARE = "square"
    TRIANGLE = "triangle"
    RING = "ring"
    CROSS = "cross"


class Colour(Enum):
    """What colour an object has; every pair is far apart, also from every background."""

    RED = "red"
    GREEN = "green"
    BLUE = "blue"
    YELLOW = "yellow"
    PURPLE = "purple"
    CYAN = "cyan"
    WHITE = "white"
    BLACK = "black"

    @property
    def rgb(self) -> Rgb:
        """The colour as red, green and blue out of 255."""
        return _COLOURS[self]


class Size(Enum):
    """How large an object is."""

    SMALL = "small"
    LARGE = "large"

    @property
    def radius(self) -> float:
        """The radius in pixels of an object's outline."""
        return 5.5 if self is Size.SMALL else 8.5


class Place(Enum):
    """Where an object is: one of nine cells, row by row."""

    TOP_LEFT = "at the top left"
    TOP = "at the top"
    TOP_RIGHT = "at the top right"
    LEFT = "on the left"
    CENTRE = "in the centre"
    RIGHT = "on the right"
    BOTTOM_LEFT = "at the bottom left"
    BOTTOM = "at the bottom"
    BOTTOM_RIGHT = "at the bottom right"

    @property
    def centre(self) -> tuple[float, float]:
        """The middle of the cell in pixels, y first."""
        row, column = divmod(list(Place).index(self), len(_CELL_CENTRES))
        return _CELL_CENTRES[row], _CELL_CENTRES[column]


class Background(Enum):
    """What is behind the objects."""

    GREY = "grey"
    BEIGE = "beige"
    BROWN = "brown"
    NAVY = "navy"
    PINK = "pink"

    @property
    def rgb(self) -> Rgb:
        """The colour as red, green and blue out of 255."""
        return _BACKGROUNDS[self]


_COLOURS: dict[Colour, Rgb] = {
    Colour.RED: (220, 40, 40),
    Colour.GREEN: (40, 170, 60),
    Colour.BLUE: (50, 90, 230),
    Colour.YELLOW: (240, 220, 40),
    Colour.PURPLE: (150, 50, 190),
    Colour.CYAN: (60, 210, 220),
    Colour.WHITE: (250, 250, 250),
    Colour.BLACK: (10, 10, 10),
}
_BACKGROUNDS: dict[Background, Rgb] = {
    Background.GREY: (128, 128, 128),
    Background.BEIGE: (225, 205, 165),
    Background.BROWN: (110, 70, 40),
    Background.NAVY: (30, 40, 95),
    Background.PINK: (245, 165, 190),
}
