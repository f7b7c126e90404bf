"""Directions in the space of conditions, and sliders along them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from retouch import SamplingError
from retouch.sampling import Change, Conditions, Denoiser, Direction, Injection, edit, edit_many, generate


@pytest.fixture
def direction(setting: Any) -> Direction:
    return Direction(setting.text(4), setting.text(5))


def test_injections_are_what_they_say(setting: Any) -> None:
    conditions = setting.asked(1)
    c, s, t = (np.float64(setting.text(seed)["text"]) for seed in (1, 4, 5))
    d = t - s
    along = np.einsum("btf,btf->bt", c, d) / np.einsum("btf,btf->bt", d, d)
    expected = {
        Injection.REPLACE: 0.6 * c + 0.4 * t,
        Injection.ADD: c + 0.4 * d,
        Injection.MULTIPLY: c + 0.4 * along[..., None] * d,
    }
    for injection, value in expected.items():
        moved = Direction(setting.text(4), setting.text(5), injection).at(conditions, 0.4)
        np.testing.assert_allclose(moved.positive["text"], value, rtol=0, atol=1e-6)
        assert np.asarray(moved.positive["text"]).dtype == np.float32
        assert moved.negative is conditions.negative and moved.guidance == conditions.guidance
        still = Direction(setting.text(4), setting.text(5), injection).at(conditions, 0.0)
        np.testing.assert_array_equal(still.positive["text"], conditions.positive["text"])


def test_an_addition_to_embeddings_is_one_to_keys_and_values(setting: Any, direction: Direction) -> None:
    """Projections are matrices, so that injecting into the embedding injects into every layer's keys and values."""
    projection = np.random.default_rng(0).standard_normal((4, 16))
    before, after = (
        np.asarray(one.positive["text"]) for one in (setting.asked(1), direction.at(setting.asked(1), 0.7))
    )
    difference = np.asarray(direction.target["text"]) - np.asarray(direction.source["text"])
    np.testing.assert_allclose(after @ projection, before @ projection + 0.7 * (difference @ projection), atol=1e-5)


def test_tokens_that_do_not_differ_stay(setting: Any) -> None:
    target = {"text": setting.text(4)["text"].copy()}
    target["text"][0, 1] += 1
    moved = Direction(setting.text(4), target, Injection.MULTIPLY).at(setting.asked(1), 2.0).positive["text"]
    same = np.asarray(moved) == setting.text(1)["text"]
    assert same[0, [0, 2]].all() and not same[0, 1].any()


def test_sliders_are_edits_of_one_base(setting: Any, denoiser: Denoiser, direction: Direction) -> None:
    base = generate(denoiser, setting.schedule(), setting.asked(1))
    strengths = (0.2, 0.4, 0.6, 0.8, 1.0)
    changes = [Change(setting.corner(), direction.at(base.conditions, strength)) for strength in strengths]
    sliders = edit_many(base, changes)
    moved = [np.abs(one.latents - base.latents).max() for one in sliders]
    assert len(set(moved)) == len(moved) and moved[0] == min(moved) > 0
    for change, slider in zip(changes, sliders, strict=True):
        alone = edit(base, setting.corner(), change.conditions)
        np.testing.assert_allclose(slider.latents, alone.latents, rtol=0, atol=1e-5 * np.abs(base.latents).max())
    assert len(denoiser.session.runs()) == 2 * len(base.steps)


def test_what_does_not_fit_says_so(setting: Any, direction: Direction) -> None:
    with pytest.raises(SamplingError, match="name the same inputs"):
        Direction({}, {})
    with pytest.raises(SamplingError, match="name the same inputs"):
        Direction(setting.text(1), {"prompt": setting.text(1)["text"]})
    with pytest.raises(SamplingError, match="floating-point arrays of one shape"):
        Direction({"text": np.zeros((1, 3, 4))}, {"text": np.zeros((1, 4, 4))})
    with pytest.raises(SamplingError, match="floating-point arrays of one shape"):
        Direction({"text": np.zeros(3, np.int64)}, {"text": np.zeros(3, np.int64)})
    with pytest.raises(SamplingError, match="finite strength"):
        direction.at(setting.asked(1), float("inf"))
    with pytest.raises(SamplingError, match=r"lack \['text'\]"):
        direction.at(Conditions({"other": np.zeros(3)}), 0.5)
    with pytest.raises(SamplingError, match=r"of the direction's shape \(1, 3, 4\), got \(1, 2, 4\)"):
        direction.at(Conditions({"text": np.zeros((1, 2, 4), np.float32)}), 0.5)
