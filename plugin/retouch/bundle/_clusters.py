"""Clusters of positions, found by how fast their states change."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class ClustersSpec:
    """Positions grouped by how fast their states change while a text is made.

    What counts is where a position stands to the block that is being filled: ``reach`` positions before its start have
    numbers of their own, all earlier ones share the first, and so behind.

    Attributes:
        reach: how far from the block's start positions are told apart.
        labels: the cluster of every offset from -reach to reach.
        rates: per layer and cluster the mean change of a row in a step, one minus the cosine of what is kept of it.
        gates: per layer the coefficients of the logarithm of how much more or less its rows change than their mean, by
            features of the step.
    """

    reach: int
    labels: tuple[int, ...]
    rates: tuple[tuple[float, ...], ...]
    gates: tuple[tuple[float, ...], ...]

    @property
    def count(self) -> int:
        """Number of clusters."""
        return len(self.rates[0])

    def of(self, rows: int, start: int) -> NDArray[np.int64]:
        """The cluster of each of so many rows, while the block from ``start`` on is filled."""
        offsets = np.clip(np.arange(rows) - start, -self.reach, self.reach) + self.reach
        found: NDArray[np.int64] = np.asarray(self.labels, np.int64)[offsets]
        return found
