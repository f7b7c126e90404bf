"""Shifts of an edit's input against their definitions, written out over whole arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from retouch.session._shift import Shift, channels_first, measure_shift, statistics

ALL = np.ones((12, 10), bool)


def inputs(seed: int = 0) -> tuple[Any, Any]:
    generator = np.random.default_rng(seed)
    base = generator.standard_normal((3, 12, 10))
    edited = base.copy()
    edited[:, 2:7, 3:10] = 2.0 + 3.0 * generator.standard_normal((3, 5, 7))
    return base, edited


def shift(base: Any, edited: Any, active: Any = ALL) -> Shift | None:
    return measure_shift(base, edited, (edited != base).any(0) & active, statistics(base))


def rough(values: Any) -> Any:
    return (np.diff(values, axis=1) ** 2).sum((1, 2)) + (np.diff(values, axis=2) ** 2).sum((1, 2))


def rms(values: Any) -> float:
    return float(np.sqrt(np.mean(values**2)))


def test_a_shift_is_that_of_the_whole_inputs_per_changed_position() -> None:
    base, edited = inputs()
    found, area = shift(base, edited), 35 / 120
    spread = base.std((1, 2))
    assert found is not None
    assert found.area == pytest.approx(area)
    assert found.mean * area == pytest.approx(rms((edited.mean((1, 2)) - base.mean((1, 2))) / spread))
    assert found.variance * area == pytest.approx(rms((edited.var((1, 2)) - base.var((1, 2))) / spread**2))
    assert found.energy * area == pytest.approx(np.mean(((edited - base) ** 2).mean((1, 2)) / spread**2))
    assert found.roughness * area == pytest.approx(np.mean(rough(edited) / rough(base) - 1))


def test_what_is_not_active_does_not_count() -> None:
    base, edited = inputs()
    active = np.zeros_like(ALL)
    active[4:, :5] = True
    assert shift(base, edited, active) == shift(base, np.where(active, edited, base))
    assert shift(base, edited, ~ALL) is None
    assert shift(base, base) is None


def test_coordinates_are_finite_for_the_smallest_and_the_strangest_edits() -> None:
    base, edited = inputs()
    edited[:] = base
    edited[0, 0, 0] += 1e-6
    flat = np.zeros_like(base)
    for one, other in ((base, edited), (flat, base), (base, flat)):
        found = shift(one, other)
        assert found is not None and np.isfinite(found.features([0.0, -3.0])).all()


def test_channels_come_first_whatever_the_axes() -> None:
    feed = np.arange(2 * 3 * 4 * 5).reshape(2, 3, 4, 5)
    assert channels_first(feed, (1, 2)).shape == (10, 3, 4)
    np.testing.assert_array_equal(channels_first(feed, (2, 3))[4], feed[1, 1])
