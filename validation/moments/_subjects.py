"""The models of the study: what they are fed, and the three kinds of edit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from retouch.calibrate import MomentExample
from retouch.session import EditSession
from retouch.validation.reference_models import export_reference, terrain
from retouch.validation.terrain import draw_noise, terrain_feeds

Array = NDArray[np.float32]
Feeds = dict[str, Array]
Kind = Literal["alike", "noise", "flat"]
KINDS: tuple[Kind, ...] = ("alike", "noise", "flat")

_SIGMAS = (0.139, 0.4, 1.15)
_SIGMA_NEW = 80.0
_DIFFICULTY = 50
_ROLL = 37
_TIME = 500


@dataclass(frozen=True)
class Subject:
    """A model of the study.

    Attributes:
        name: what tables call it.
        title: what it is.
        model: makes the ONNX file, in a directory.
        examples: what the modes are calibrated with, given a session and the number of base runs.
        base: the feeds of a base run, given a session and its number; none is among the examples.
        content: what an edit of that kind puts into its patch, an editable input, given the base run's and a seed.
    """

    name: str
    title: str
    model: Callable[[Path], Path]
    examples: Callable[[EditSession, int], Iterator[MomentExample]]
    base: Callable[[EditSession, int], Feeds]
    content: Callable[[Array, Kind, int], Array]


def _terrain_model(_folder: Path) -> Path:
    return terrain()


def _terrain_source(session: EditSession, seed: int) -> Array:
    feeds = terrain_feeds(draw_noise(seed), sigma=_SIGMA_NEW, difficulty=_DIFFICULTY)
    output: Array = session.base(feeds, record=False).outputs["denoised"]
    return output.copy()


def _terrain_noisy(source: Array, sigma: float, seed: int) -> Feeds:
    return terrain_feeds(draw_noise(seed), sigma=sigma, difficulty=_DIFFICULTY, source=source)


def _terrain_examples(session: EditSession, count: int) -> Iterator[MomentExample]:
    """Terrains at every noise level in turn; patches come from another terrain, and with noise drawn anew."""
    for number in range(count):
        sigma = _SIGMAS[number % len(_SIGMAS)]
        source, other = (_terrain_source(session, seed + number) for seed in (1000, 2000))
        pasted = [_terrain_noisy(one, sigma, seed + number)["noisy"] for one, seed in ((source, 4000), (other, 5000))]
        yield MomentExample(_terrain_noisy(source, sigma, 3000 + number), pasted)


def _terrain_base(session: EditSession, number: int) -> Feeds:
    return _terrain_noisy(_terrain_source(session, 1 + number), 0.4, 100 + number)


def _ddpm_model(folder: Path) -> Path:
    return export_reference("ddpm_unet_64", folder)


def _ddpm_feeds(seed: int) -> Feeds:
    noise = np.random.default_rng(seed).standard_normal((1, 3, 64, 64), dtype=np.float32)
    return {"x": noise, "t": np.full(1, _TIME, np.int64)}


def _ddpm_examples(_session: EditSession, count: int) -> Iterator[MomentExample]:
    for number in range(count):
        yield MomentExample(_ddpm_feeds(1000 + number), [_ddpm_feeds(2000 + number)["x"]])


def _content(base: Array, kind: Kind, seed: int, alike: Array) -> Array:
    if kind == "alike":
        return alike
    if kind == "noise":
        return base + np.random.default_rng(seed).standard_normal(base.shape, dtype=np.float32)
    return np.ones_like(base)


SUBJECTS: Mapping[str, Subject] = MappingProxyType(
    {
        subject.name: subject
        for subject in (
            Subject(
                "terrain",
                "terrain UNet (trained), sigma 0.4",
                _terrain_model,
                _terrain_examples,
                _terrain_base,
                lambda base, kind, seed: _content(base, kind, seed, np.roll(base, _ROLL, 3)),
            ),
            Subject(
                "ddpm_unet_64",
                "DDPM-style UNet, 64x64 (random weights)",
                _ddpm_model,
                _ddpm_examples,
                lambda _session, number: _ddpm_feeds(1 + number),
                lambda base, kind, seed: _content(base, kind, seed, _ddpm_feeds(500 + seed)["x"]),
            ),
        )
    }
)
"""The models by name."""
