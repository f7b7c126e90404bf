"""What is in an image is read back, from clean images and from worse ones."""

from __future__ import annotations

from typing import Any

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
    read_scene,
    render,
    score_scenes,
)


def _score(change: Any, count: int = 150) -> float:
    rng = np.random.default_rng(3)
    scenes = [draw_scene(rng, index % 4) for index in range(count)]
    return score_scenes((scene, read_scene(change(render(scene), rng))) for scene in scenes).accuracy


def _blurred(image: Any, rng: Any) -> Any:
    padded = np.pad(image.astype(float), ((1, 1), (1, 1), (0, 0)), mode="edge")
    rows = (padded[:-2] + 2 * padded[1:-1] + padded[2:]) / 4
    return np.rint((rows[:, :-2] + 2 * rows[:, 1:-1] + rows[:, 2:]) / 4).astype(np.uint8)


def _noisy(image: Any, rng: Any) -> Any:
    return np.clip(image + rng.normal(0, 6, image.shape), 0, 255).astype(np.uint8)


def test_clean_scenes_are_read_right() -> None:
    assert _score(lambda image, rng: image) >= 0.99


def test_noise_and_blur_do_little_harm() -> None:
    assert _score(_noisy) >= 0.99
    assert _score(_blurred) >= 0.95


@pytest.mark.parametrize("shape", Shape)
@pytest.mark.parametrize("size", Size)
def test_every_colour_before_every_background(shape: Shape, size: Size) -> None:
    for colour in Colour:
        for background in Background:
            wanted = Scene((SceneObject(shape, colour, size, Place.BOTTOM),), background)
            assert read_scene(render(wanted)).caption == wanted.caption


def test_objects_that_touch_are_told_apart() -> None:
    image = render(
        Scene(
            tuple(SceneObject(Shape.CIRCLE, Colour.RED, Size.LARGE, place) for place in (Place.LEFT, Place.CENTRE)),
            Background.GREY,
        )
    )
    image[31:33, 18:26] = Colour.RED.rgb
    assert [one.place for one in read_scene(image).objects] == [Place.LEFT, Place.CENTRE]


def test_an_empty_scene_has_no_objects() -> None:
    assert read_scene(render(Scene((), Background.PINK))) == Scene((), Background.PINK)


def test_other_images_are_refused() -> None:
    with pytest.raises(FeedError, match=r"float64 of \(64, 64, 3\)"):
        read_scene(np.zeros((64, 64, 3)))


def test_scores_count_what_is_wrong_missing_and_extra() -> None:
    ring = SceneObject(Shape.RING, Colour.BLUE, Size.SMALL, Place.LEFT)
    red = SceneObject(Shape.RING, Colour.RED, Size.SMALL, Place.LEFT)
    elsewhere = SceneObject(Shape.RING, Colour.BLUE, Size.SMALL, Place.RIGHT)
    wanted = Scene((ring,), Background.GREY)
    assert score_scenes([(wanted, wanted)]).accuracy == 1
    assert score_scenes([(wanted, Scene((red,), Background.GREY))]).accuracy == 4 / 5
    assert score_scenes([(wanted, Scene((), Background.GREY))]).accuracy == 1 / 5
    moved = score_scenes([(wanted, Scene((elsewhere,), Background.GREY))])
    assert moved.accuracy == 1 / 6 and moved.extra == 1 and moved.complete == 0
