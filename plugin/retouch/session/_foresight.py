"""Errors of edits, foreseen from those that were measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

_SPREAD = 1.0
"""Width of the kernel, in standard deviations per coordinate."""

_DAMPINGS = (0.03, 0.1, 0.3, 1.0)
"""What may be added to the kernel's diagonal. Errors of a trained model scatter, and little of that is to be followed;
those of a model with random weights hardly do. How much they scatter, the measurements say themselves."""

_LINE_DAMPING = 0.5
_FOLDS = 5
_LEAST_ERROR = 1e-7

_Array = NDArray[np.float64]


class Foresight:
    """Foresees errors: a line through their logarithms, and a kernel ridge regression of what the line leaves.

    Near edits that were measured it follows them, far from all of them the line. The damping is the one with which
    every fifth of the edits is foreseen best from the others; edits of one base run are to stand next to each other.
    """

    def __init__(self, shifts: Sequence[Sequence[float]], errors: Mapping[str, Sequence[float]]) -> None:
        """Fits measured edits.

        Args:
            shifts: per edit its coordinates.
            errors: per mode one error per edit.
        """
        self._modes = tuple(errors)
        points = np.asarray(shifts, np.float64)
        self._centre, spread = points.mean(0), points.std(0)
        self._scale = np.where(spread > 1e-6, spread, 1.0)
        self._points = self._scaled(points)
        logs = np.log(np.maximum(np.asarray([errors[mode] for mode in self._modes]).T, _LEAST_ERROR))
        design, kernel = _design(self._points), self._kernel(self._points)
        self._line, self._weights = _fitted(design, kernel, logs, _best_damping(design, kernel, logs))

    def errors(self, shift: Sequence[float]) -> dict[str, float]:
        """Per mode the error to expect of an edit with those coordinates."""
        point = self._scaled(np.asarray([shift], np.float64))
        logs = _design(point) @ self._line + self._kernel(point) @ self._weights
        return dict(zip(self._modes, np.exp(logs[0]).tolist(), strict=True))

    def _scaled(self, points: _Array) -> _Array:
        return np.asarray((points - self._centre) / self._scale)

    def _kernel(self, points: _Array) -> _Array:
        squares = ((points[:, None] - self._points[None]) ** 2).sum(-1)
        return np.asarray(np.exp(-squares / (2.0 * _SPREAD**2 * points.shape[1])))


def _fitted(design: _Array, kernel: _Array, logs: _Array, damping: float) -> tuple[_Array, _Array]:
    """The line, and the weights of the kernel."""
    slopes = np.diag([0.0, *[_LINE_DAMPING] * (design.shape[1] - 1)])
    line = np.asarray(np.linalg.solve(design.T @ design + slopes, design.T @ logs), np.float64)
    damped = kernel + damping * np.eye(len(kernel))
    return line, np.asarray(np.linalg.solve(damped, logs - design @ line), np.float64)


def _best_damping(design: _Array, kernel: _Array, logs: _Array) -> float:
    """The damping under which edits are foreseen best from those of other base runs."""
    folds = np.arange(len(logs)) * _FOLDS // len(logs)
    if len(logs) < 2 * _FOLDS:
        return _DAMPINGS[-1]
    return min(_DAMPINGS, key=lambda damping: _held_out_square(design, kernel, logs, folds, damping))


def _held_out_square(design: _Array, kernel: _Array, logs: _Array, folds: NDArray[np.int64], damping: float) -> float:
    """Sum of the squared errors of logarithms, every fold foreseen from the others."""
    total = 0.0
    for fold in range(_FOLDS):
        held, rest = folds == fold, folds != fold
        line, weights = _fitted(design[rest], kernel[np.ix_(rest, rest)], logs[rest], damping)
        foreseen = design[held] @ line + kernel[np.ix_(held, rest)] @ weights
        total += float(((foreseen - logs[held]) ** 2).sum())
    return total


def _design(points: _Array) -> _Array:
    return np.concatenate([np.ones((len(points), 1)), points], axis=1)
