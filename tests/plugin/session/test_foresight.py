"""Foreseen errors: near measured edits, far from them, and in rank."""

from __future__ import annotations

import numpy as np
import pytest

from retouch.session._foresight import Foresight


def measured(count: int, seed: int) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Edits whose errors bend: one mode errs with the first coordinate, the other with its distance from 1."""
    points = np.random.default_rng(seed).uniform(-2, 2, (count, 2))
    return points, {"a": np.exp(points[:, 0]), "b": np.exp(2 * np.abs(points[:, 0] - 1) - 2)}


def test_errors_of_edits_that_were_not_measured_are_foreseen() -> None:
    points, errors = measured(120, seed=0)
    foresight = Foresight(points.tolist(), {mode: own.tolist() for mode, own in errors.items()})
    others, true = measured(60, seed=1)
    foreseen = [foresight.errors(point) for point in others]
    for mode in ("a", "b"):
        assert np.corrcoef(np.log([one[mode] for one in foreseen]), np.log(true[mode]))[0, 1] > 0.95
    apart = np.abs(np.log(true["a"] / true["b"])) > 0.5
    agree = np.array([one["a"] < one["b"] for one in foreseen]) == (true["a"] < true["b"])
    assert agree[apart].all()


def test_far_from_all_edits_errors_follow_the_line() -> None:
    points, errors = measured(120, seed=0)
    foresight = Foresight(points.tolist(), {"a": errors["a"].tolist()})
    near, far = (foresight.errors([value, 0.0])["a"] for value in (10.0, 11.0))
    assert np.log(far / near) == pytest.approx(1.0, abs=0.05)


def test_a_coordinate_that_never_varied_and_an_error_of_zero_do_no_harm() -> None:
    foresight = Foresight([[0.0, 7.0], [1.0, 7.0], [2.0, 7.0]], {"a": [0.0, 1e-3, 1.0]})
    assert 0 < foresight.errors([1.0, 7.0])["a"] < 1


@pytest.mark.parametrize(("scatter", "limit"), [(0.05, 0.2), (0.8, 0.46)])
def test_scatter_is_followed_as_far_as_it_means_something(scatter: float, limit: float) -> None:
    generator = np.random.default_rng(2)
    points, others = generator.uniform(-2, 2, (150, 5)), generator.uniform(-2, 2, (100, 5))

    def truth(at: np.ndarray) -> np.ndarray:
        return at[:, 0] + np.abs(at[:, 1])

    logs = truth(points) + scatter * generator.standard_normal(len(points))
    foresight = Foresight(points.tolist(), {"a": np.exp(logs).tolist()})
    foreseen = np.log([foresight.errors(point)["a"] for point in others])
    assert np.sqrt(np.mean((foreseen - truth(others)) ** 2)) < limit
