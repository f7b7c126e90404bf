"""The terrain that is edited, and the edits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retouch.region import Region
from retouch.validation.terrain import NATIVE_SIZE, difficulty_label, draw_noise, terrain_feeds

Feeds = Mapping[str, NDArray[Any]]
Denoise = Callable[[Feeds], NDArray[np.float32]]

_SIGMA_NEW = 80.0
_SIGMA = 0.4
_DIFFICULTY = 50
_EDITED_DIFFICULTY = 95


@dataclass(frozen=True)
class EditCase:
    """One edit: its name, where it is, and the feeds that it changes."""

    name: str
    region: Region
    change: Feeds


@dataclass(frozen=True)
class Scene:
    """The base feeds and the edits; the last edit follows on the one before."""

    base: Feeds
    edits: tuple[EditCase, ...]


def make_scene(denoise: Denoise) -> Scene:
    """A terrain of medium difficulty at a noise level of 0.4, and four edits of it.

    The patches come from a rougher terrain of about the same height; ``retouch.validation.fidelity`` studies edits
    that fit their surroundings more and less than these.
    """
    here, there = (_terrain(denoise, seed) for seed in (7, 12))
    base = terrain_feeds(draw_noise(3), sigma=_SIGMA, difficulty=_DIFFICULTY, source=here)
    other = terrain_feeds(draw_noise(4), sigma=_SIGMA, difficulty=_DIFFICULTY, source=there)["noisy"]
    small, medium = _square(56, 56, 16), _square(24, 72, 32)
    label = np.array([difficulty_label(_EDITED_DIFFICULTY)], dtype=np.float32)
    edits = (
        _pasted("small patch", base, other, small),
        _pasted("medium patch", base, other, medium),
        EditCase("difficulty in a freehand region", Region.from_mask(_freehand()), {"difficulty": label}),
        _pasted("small patch, then another", base, other, _square(88, 24, 16)),
    )
    return Scene(base, edits)


def _terrain(denoise: Denoise, seed: int) -> NDArray[np.float32]:
    return denoise(terrain_feeds(draw_noise(seed), sigma=_SIGMA_NEW, difficulty=_DIFFICULTY))


def _pasted(name: str, base: Feeds, other: NDArray[np.float32], mask: NDArray[np.bool_]) -> EditCase:
    noisy = base["noisy"].copy()
    noisy[..., mask] = other[..., mask]
    return EditCase(name, Region.from_mask(mask), {"noisy": noisy})


def _square(top: int, left: int, size: int) -> NDArray[np.bool_]:
    mask = np.zeros((NATIVE_SIZE, NATIVE_SIZE), dtype=bool)
    mask[top : top + size, left : left + size] = True
    return mask


def _freehand() -> NDArray[np.bool_]:
    """A wobbly outline, as a hand draws it."""
    y, x = np.mgrid[:NATIVE_SIZE, :NATIVE_SIZE] - np.array([80.0, 44.0])[:, None, None]
    angle = np.arctan2(y, x)
    mask: NDArray[np.bool_] = np.hypot(x, y) < 14 + 3 * np.sin(3 * angle) + 2 * np.cos(5 * angle)
    return mask
