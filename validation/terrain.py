"""The conventions of the trained terrain model: noise, noise levels, difficulty labels, and heights.

All arithmetic is the model package's own, called through its generator class; nothing of it is restated here.
A terrain is made from pure noise, or varied from given heights at a strength between 0 and 1::

    source = to_model_space(heights)
    feeds = terrain_feeds(draw_noise(seed=3), sigma=sigma_for_strength(0.5), difficulty=50, source=source)
    denoised = session.run(["denoised"], feeds)[0]
    varied = to_heights(denoised)
"""

# The package has no public functions for its conventions; see _conventions.
# ruff: noqa: SLF001

from __future__ import annotations

import functools
import importlib
from typing import Any, Protocol, cast

import numpy as np
import numpy.typing as npt

from retouch.errors import FeedError
from retouch.validation.reference_models import require_terrain_package, terrain

__all__ = [
    "FloatArray",
    "NATIVE_SIZE",
    "SIGMA_MAX",
    "SIGMA_MIN",
    "difficulty_label",
    "draw_noise",
    "sigma_for_strength",
    "terrain",
    "terrain_feeds",
    "to_heights",
    "to_model_space",
]

FloatArray = npt.NDArray[np.float32]

NATIVE_SIZE = 128
SIGMA_MIN = 0.002
SIGMA_MAX = 80.0


class _Conventions(Protocol):
    """What is used of the package's ``TerrainGenerator``."""

    def _difficulty_labels(
        self, difficulty: list[int], count: int, generator: np.random.Generator
    ) -> tuple[FloatArray, Any]: ...

    def _strength_sigma(self, strength: float) -> float: ...

    def _to_model_space(self, terrains: FloatArray) -> FloatArray: ...

    def _from_model_space(self, values: FloatArray, *, zero_floor: bool) -> FloatArray: ...


def draw_noise(seed: int, count: int = 1) -> FloatArray:
    """Unit noise [count, 1, 128, 128], the same that the package draws for this seed and a given difficulty."""
    shape = (count, 1, NATIVE_SIZE, NATIVE_SIZE)
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)


def sigma_for_strength(strength: float) -> float:
    """The noise level at which a given terrain is varied: ``SIGMA_MIN`` at strength 0, ``SIGMA_MAX`` at 1.

    Raises:
        FeedError: the strength is outside 0 to 1.
    """
    if not 0.0 <= strength <= 1.0:
        raise FeedError(f"expected a strength between 0 and 1, got {strength}; 0 keeps the terrain, 1 replaces it")
    return _conventions()._strength_sigma(strength)


def difficulty_label(difficulty: int) -> float:
    """The model's ``difficulty`` input, 0 to 1, for a difficulty of 1 to 100.

    Raises:
        FeedError: the difficulty is not a whole number of 1 to 100.
    """
    try:
        # As a list: on its own, None or a word would be taken as a wish for a random difficulty.
        labels, _ = _conventions()._difficulty_labels([difficulty], 1, np.random.default_rng(0))
    except ValueError as error:
        raise FeedError(f"expected a difficulty of 1 to 100, got {difficulty!r}: {error}") from error
    return float(labels[0])


def terrain_feeds(
    noise: FloatArray, *, sigma: float, difficulty: int, source: FloatArray | None = None
) -> dict[str, FloatArray]:
    """The model's feeds for one denoising step.

    Args:
        noise: unit noise [B, 1, 128, 128].
        sigma: noise level, ``SIGMA_MIN`` to ``SIGMA_MAX``.
        difficulty: 1 to 100.
        source: terrain in model space to vary, of the noise's shape; a new terrain is made without it.

    Raises:
        FeedError: a shape, the noise level or the difficulty does not fit the model.
    """
    _check(noise, sigma, source)
    noisy = noise * np.float32(sigma)
    if source is not None:
        noisy += source
    count = len(noise)
    label = difficulty_label(difficulty)
    return {
        "noisy": noisy,
        "sigma": np.full(count, sigma, dtype=np.float32),
        "difficulty": np.full(count, label, dtype=np.float32),
    }


def to_model_space(heights: FloatArray) -> FloatArray:
    """The model's values [B, 1, H, W], -1 to 1, for heights [B, H, W] in metres above the lowest point."""
    if heights.ndim != 3:
        raise FeedError(f"expected heights of shape [B, H, W], got {list(heights.shape)}; add the batch axis")
    return _conventions()._to_model_space(heights)


def to_heights(values: FloatArray, *, zero_floor: bool = True) -> FloatArray:
    """The heights [B, H, W] in metres for the model's values [B, 1, H, W].

    Args:
        values: what the model returned.
        zero_floor: put the lowest point of every terrain at 0; without it a local edit leaves all other heights alone.
    """
    if values.ndim != 4:
        raise FeedError(f"expected values of shape [B, 1, H, W], got {list(values.shape)}; pass the model's output")
    return _conventions()._from_model_space(values, zero_floor=zero_floor)


@functools.cache
def _conventions() -> _Conventions:
    """The package's generator class without a session of its own.

    Its constructor would load the model; the conversions only read class attributes, so an instance that was never
    constructed serves. They are private methods, which is why the package's version is pinned.
    """
    require_terrain_package()
    generator = importlib.import_module("terrain_diffusion.generator").TerrainGenerator
    return cast("_Conventions", object.__new__(generator))


def _check(noise: FloatArray, sigma: float, source: FloatArray | None) -> None:
    native = (1, NATIVE_SIZE, NATIVE_SIZE)
    if noise.ndim != 4 or noise.shape[1:] != native:
        raise FeedError(f"expected noise of shape [B, 1, 128, 128], got {list(noise.shape)}; use draw_noise")
    if source is not None and source.shape != noise.shape:
        raise FeedError(f"expected a source of the noise's shape {list(noise.shape)}, got {list(source.shape)}")
    if not SIGMA_MIN <= sigma <= SIGMA_MAX:
        raise FeedError(f"expected sigma between {SIGMA_MIN} and {SIGMA_MAX}, got {sigma}; see sigma_for_strength")
