"""Scenes are drawn, described and rendered the same every time."""

from __future__ import annotations

import numpy as np
import pytest

from retouch.errors import FeedError
from retouch.models.scenes import (
    Background,
    Colour,
    Place,
    Scene,
    SceneObject,
    Shape,
    Size,
    draw_scene,
    is_held_out,
    parse_caption,
    render,
    training_scenes,
    unseen_scenes,
)

RING = SceneObject(Shape.RING, Colour.BLUE, Size.SMALL, Place.TOP_RIGHT)
SQUARE = SceneObject(Shape.SQUARE, Colour.RED, Size.LARGE, Place.CENTRE)


def test_scenes_are_the_same_for_the_same_seed() -> None:
    one, other, third = (training_scenes(np.random.default_rng(seed), 20) for seed in (4, 4, 5))
    assert one == other
    assert one != third


def test_training_never_sees_what_is_held_out() -> None:
    seen = training_scenes(np.random.default_rng(0), 500)
    assert not any(is_held_out(one) for scene in seen for one in scene.objects)
    assert {len(scene.objects) for scene in seen} == {0, 1, 2, 3}


def test_an_eighth_of_the_combinations_is_held_out_evenly() -> None:
    held = [
        (shape, colour, place)
        for shape in Shape
        for colour in Colour
        for place in Place
        if is_held_out(SceneObject(shape, colour, Size.SMALL, place))
    ]
    assert len(held) == len(Shape) * len(Colour) * len(Place) / 8
    assert {place for _, _, place in held} == set(Place)
    assert {colour for _, colour, _ in held} == set(Colour)


def test_every_unseen_scene_holds_something_held_out() -> None:
    scenes = unseen_scenes(60)
    assert all(any(map(is_held_out, scene.objects)) for scene in scenes)
    assert scenes == unseen_scenes(60)
    assert [len(scene.objects) for scene in scenes[:6]] == [1, 2, 3, 1, 2, 3]


def test_captions_say_what_is_where() -> None:
    caption = Scene((SQUARE, RING), Background.NAVY).caption
    assert caption == "a large red square in the centre, a small blue ring at the top right, navy background"
    assert parse_caption(caption) == Scene((SQUARE, RING), Background.NAVY)


def test_captions_of_drawn_scenes_are_understood() -> None:
    rng = np.random.default_rng(1)
    for count in range(4):
        scene = draw_scene(rng, count)
        assert parse_caption(scene.caption).caption == scene.caption


@pytest.mark.parametrize(
    ("caption", "message"),
    [
        ("a large red dog on the left, grey background", "got 'dog'"),
        ("a red circle, grey background", "described like 'a large red circle on the left'; got 'a red circle'"),
        ("a large circle red on the left, grey background", "A shape is one of .*; got 'red'"),
        ("a large red circle on the left", "A background is one of"),
        ("a small red ring on the left, a small blue ring on the left, grey background", "two at one place"),
    ],
)
def test_other_captions_are_refused(caption: str, message: str) -> None:
    with pytest.raises(FeedError, match=message):
        parse_caption(caption)


def test_pixels_have_the_colours_of_the_scene() -> None:
    image = render(Scene((SQUARE, RING), Background.NAVY))
    assert image.shape == (64, 64, 3) and image.dtype == np.uint8
    assert tuple(image[32, 32]) == Colour.RED.rgb
    assert tuple(image[11, 53]) == Background.NAVY.rgb, "a ring is open"
    assert tuple(image[11, 53 + 4]) == Colour.BLUE.rgb
    assert tuple(image[0, 0]) == Background.NAVY.rgb


@pytest.mark.parametrize("shape", Shape)
def test_large_objects_stay_in_the_picture_and_apart(shape: Shape) -> None:
    offsets = [(-1.0, -1.0), (1.0, 1.0)]
    objects = tuple(
        SceneObject(shape, Colour.WHITE, Size.LARGE, place, offset, 1.05)
        for place, offset in zip((Place.LEFT, Place.RIGHT), offsets, strict=True)
    )
    covered = (render(Scene(objects, Background.NAVY)) != Background.NAVY.rgb).any(axis=2)
    columns = np.flatnonzero(covered.any(axis=0))
    assert columns.size and columns[0] >= 0 and (np.diff(columns) > 10).any()
