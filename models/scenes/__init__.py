"""Scenes of coloured shapes: a small text-to-image pipeline of our own, its data, and how it is measured."""

from __future__ import annotations

__all__ = [
    # Scenes
    "Background",
    "Colour",
    "Place",
    "Scene",
    "SceneObject",
    "Shape",
    "Size",
    "parse_caption",
    "render",
    # Drawn at random
    "draw_scene",
    "is_held_out",
    "training_scenes",
    "unseen_scenes",
    # The trained pipeline
    "PIPELINE",
    "Sampling",
    "load_pipeline",
    "make_images",
    # Measured
    "Score",
    "Trial",
    "read_scene",
    "score_scenes",
    "try_pipeline",
]

from retouch.models.scenes._draw import draw_scene, is_held_out, training_scenes, unseen_scenes
from retouch.models.scenes._pipeline import PIPELINE, Sampling, load_pipeline, make_images
from retouch.models.scenes._reader import read_scene
from retouch.models.scenes._render import render
from retouch.models.scenes._scene import Scene, SceneObject, parse_caption
from retouch.models.scenes._scoring import Score, score_scenes
from retouch.models.scenes._trial import Trial, try_pipeline
from retouch.models.scenes._vocabulary import Background, Colour, Place, Shape, Size
