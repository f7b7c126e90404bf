"""Latents that are kept for a while, by layer, cluster of positions and step (the time-anchored cache)."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field

import numpy as np

from retouch.bundle import ClustersSpec
from retouch.errors import SamplingError
from retouch.text._options import check_count
from retouch.text._step import Mask
from retouch.text.full_attention._policy import (
    Canvas,
    Moment,
    Planner,
    RowPlan,
    Rows,
)


@dataclass(frozen=True)
class AnchoredCache:
    """What a layer computed of a cluster of positions in a step is used in later steps while it is expected to hold.

    The key of what is kept is layer, cluster and step. Clusters are found by k-means of how fast rows change, and
    stored in the bundle (:func:`find_clusters`). In every step each layer has a gate, a function of an embedding of the
    step (of how much of the text is masked): it says how fast the layer's rows change now. A cluster's rows count as
    anchored while rate, gate and age multiplied are below ``tolerance`` and nothing is older than ``staleness`` steps.
    Rows whose logits are wanted, and those near tokens that were just set, are always computed. The first forward of a
    block computes all.

    Attributes:
        tolerance: how much rows may be expected to have changed, one minus the cosine of their values.
        staleness: the oldest that anything used may be, in steps.
        warm_up: so many forwards compute all rows at first.
        capacity: how many entries are kept, over all layers; the one that was used longest ago goes first. ``None``
            means all.
        near: rows within so many rows of tokens that were just set are computed.
    """

    tolerance: float = 0.1
    staleness: int = 2
    warm_up: int = 2
    capacity: int | None = None
    near: int = 16

    def __post_init__(self) -> None:
        """Checks every number.

        Raises:
            SamplingError: one is out of its range.
        """
        check_count("staleness", self.staleness, 0)
        check_count("warm_up", self.warm_up, 0)
        check_count("near", self.near, 0)
        if self.capacity is not None:
            check_count("capacity", self.capacity, 0)
        if not self.tolerance >= 0:
            raise SamplingError(f"Expected tolerance to be a number of at least 0, got {self.tolerance!r}.")

    def start(self, canvas: Canvas) -> Planner:
        """See :class:`CachePolicy`."""
        if canvas.clusters is None:
            raise SamplingError(
                "Expected a bundle with clusters of positions, which AnchoredCache needs, got one without. Find them "
                "with `retouch text cluster`, or with retouch.text.full_attention.find_clusters and "
                "bundle.with_clusters."
            )
        if len(canvas.clusters.rates) != canvas.spec.layers:
            raise SamplingError(
                f"Expected clusters of a model of {canvas.spec.layers} layers, got {len(canvas.clusters.rates)}. Find "
                "them again for this model."
            )
        return _Planner(canvas, self, canvas.clusters)


def step_features(masked_share: float) -> np.ndarray:
    """The embedding of a step [5]: a constant, and sines and cosines of how much of the text is masked."""
    angles = np.pi * masked_share * np.array([1.0, 2.0])
    return np.concatenate(([1.0], np.cos(angles), np.sin(angles)))


@dataclass(eq=False)
class _Planner:
    canvas: Canvas
    policy: AnchoredCache
    clusters: ClustersSpec
    _steps: OrderedDict[tuple[int, int], int] = field(default_factory=OrderedDict)
    """The step of what is kept, by layer and cluster; what was used last comes last."""

    def plan(self, moment: Moment) -> RowPlan:
        layers, clusters = range(self.canvas.spec.layers), range(self.clusters.count)
        if moment.block_step == 0 or moment.step < self.policy.warm_up:
            # Clusters move with the block, so that what was kept of them belongs to other rows.
            self._steps.clear()
            for key in ((layer, cluster) for layer in layers for cluster in clusters):
                self._keep(key, moment.step)
            return RowPlan(self.canvas.every)
        labels = self.clusters.of(self.canvas.rows, moment.block[0])
        always = np.zeros(self.canvas.rows, bool)
        always[moment.targets] = always[moment.near(self.policy.near)] = True
        gates = np.exp(np.array(self.clusters.gates) @ step_features(moment.masked_share))
        return RowPlan(tuple(self._rows(layer, labels, always, float(gates[layer]), moment.step) for layer in layers))

    def _rows(self, layer: int, labels: Rows, always: Mask, gate: float, step: int) -> Rows:
        due = np.array([not self._anchored(layer, cluster, gate, step) for cluster in range(self.clusters.count)])
        for cluster in np.flatnonzero(due).tolist():
            self._keep((layer, cluster), step)
        return np.flatnonzero(always | due[labels])

    def _anchored(self, layer: int, cluster: int, gate: float, step: int) -> bool:
        """Whether what is kept of a cluster may be used; if so, it counts as used now."""
        kept = self._steps.get((layer, cluster))
        if kept is None or step - kept > self.policy.staleness:
            return False
        if self.clusters.rates[layer][cluster] * gate * (step - kept) > self.policy.tolerance:
            return False
        self._steps.move_to_end((layer, cluster))
        return True

    def _keep(self, key: tuple[int, int], step: int) -> None:
        self._steps[key] = step
        self._steps.move_to_end(key)
        if self.policy.capacity is not None:
            while len(self._steps) > self.policy.capacity:
                self._steps.popitem(last=False)
