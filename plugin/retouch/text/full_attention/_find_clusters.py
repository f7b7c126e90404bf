"""Clusters of positions by how fast their states change, and how that depends on the step."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from retouch.bundle import ClustersSpec
from retouch.errors import SamplingError
from retouch.text._model import TextModel
from retouch.text._options import check_count
from retouch.text._wording import Prompt
from retouch.text.full_attention._anchored import step_features
from retouch.text.full_attention._denoising import Denoising
from retouch.text.full_attention._no_cache import NoCache
from retouch.text.full_attention._sampler import FullAttentionSampler
from retouch.text.full_attention._unmask import UnmaskOptions

_LEAST_CHANGE = 1e-6
_ROUNDS = 50
_RIDGE = 1e-3

Array = NDArray[np.float64]
Latents = tuple[NDArray[np.float32], ...]


def find_clusters(
    model: TextModel,
    prompts: Sequence[Prompt],
    length: int,
    *,
    count: int = 8,
    reach: int = 128,
    options: UnmaskOptions | None = None,
    seed: int = 0,
) -> ClustersSpec:
    """Clusters of positions of a model, from texts that it makes without a cache.

    After every forward that does not begin a block, each row's values, and what every layer adds to it, are
    compared with those of the forward before.
    Positions are told apart by where they stand to the block; k-means groups them by the logarithm of their mean change
    in every layer.

    Args:
        model: the model.
        prompts: what the texts begin with.
        length: new tokens of each.
        count: number of clusters.
        reach: how far from the block's start positions are told apart.
        options: how the texts are made.
        seed: seed of k-means.

    Raises:
        SamplingError: there are no prompts, or texts in which nothing could be compared.
    """
    check_count("count", count, 1)
    check_count("reach", reach, 1)
    record = _Record(model.spec.layers, reach)
    sampler = FullAttentionSampler(model, NoCache(), options)
    for prompt in prompts:
        denoising = sampler.begin(sampler.tokens_of(prompt), length)
        sampler.fill(denoising, partial(record.add, denoising, record.previous(denoising)))
    return record.clusters(count, seed)


class _Record:
    """How much rows changed, by where they stand to the block, and by how much of the text was masked."""

    def __init__(self, layers: int, reach: int) -> None:
        self._layers, self._reach = layers, reach
        self._sums = np.zeros((2 * reach + 1, layers))
        self._counts = np.zeros(2 * reach + 1)
        self._steps: list[tuple[Array, Array]] = []  # features of a step, and per layer how much its rows changed

    def previous(self, denoising: Denoising) -> list[Latents]:
        """Room for what the forward before left, per layer."""
        return [tuple(np.zeros_like(part) for part in self._latents(denoising, n)) for n in range(self._layers)]

    def add(self, denoising: Denoising, before: list[Latents], _: object) -> None:
        """Compares what a forward left with what the one before it did."""
        now = [self._latents(denoising, layer) for layer in range(self._layers)]
        if denoising.block_step:
            changes = np.stack([_changes(one, other) for one, other in zip(before, now, strict=True)], 1)
            rows = np.arange(len(changes))
            offsets = np.clip(rows - denoising.block[0], -self._reach, self._reach) + self._reach
            np.add.at(self._sums, offsets, changes)
            np.add.at(self._counts, offsets, 1)
            self._steps.append((step_features(float(denoising.masked.mean())), changes.mean(0)))
        for old, new in zip(before, now, strict=True):
            for room, part in zip(old, new, strict=True):
                room[...] = part

    def clusters(self, count: int, seed: int) -> ClustersSpec:
        seen = np.flatnonzero(self._counts)
        if len(seen) < count:
            raise SamplingError(
                f"Expected texts in which at least {count} places could be compared, got {len(seen)}. Give prompts, "
                "longer texts, or ask for fewer clusters."
            )
        rates = self._sums[seen] / self._counts[seen, None]
        labels = _k_means(np.log(rates + _LEAST_CHANGE), count, seed)
        means = np.stack([rates[labels == label].mean(0) for label in range(count)])
        every = np.arange(2 * self._reach + 1)
        nearest = np.abs(every[:, None] - seen[None]).argmin(1)
        return ClustersSpec(
            self._reach,
            tuple(int(label) for label in labels[nearest]),
            tuple(tuple(float(rate) for rate in layer) for layer in means.T),
            self._gates(),
        )

    def _gates(self) -> tuple[tuple[float, ...], ...]:
        """Per layer a line through the logarithms of how much more its rows changed in a step than on the average."""
        features = np.stack([step for step, _ in self._steps])
        changes = np.stack([change for _, change in self._steps]) + _LEAST_CHANGE
        logs = np.log(changes / changes.mean(0))
        damped = features.T @ features + _RIDGE * len(features) * np.eye(features.shape[1])
        lines = np.linalg.solve(damped, features.T @ logs)
        return tuple(tuple(float(weight) for weight in line) for line in lines.T)

    @staticmethod
    def _latents(denoising: Denoising, layer: int) -> Latents:
        """The values of all rows [N, kv_heads * head_dim], and what the layer adds to them [N, hidden]."""
        arrays = denoising.states.arrays
        values = arrays[f"values.{layer}"][0].transpose(1, 0, 2)
        return values.reshape(len(values), -1), arrays[f"added.{layer}"]


def _changes(before: Latents, now: Latents) -> Array:
    """One minus the cosine, per row: of its values or of what is added to it, whichever changed more."""
    return np.maximum(*(_turned(one, other) for one, other in zip(before, now, strict=True)))


def _turned(before: NDArray[np.float32], now: NDArray[np.float32]) -> Array:
    lengths = np.linalg.norm(before, axis=1) * np.linalg.norm(now, axis=1)
    return np.asarray(np.maximum(1 - (before * now).sum(1) / np.maximum(lengths, 1e-12), 0), np.float64)


def _k_means(points: Array, count: int, seed: int) -> NDArray[np.int64]:
    """The cluster of every point, after Lloyd's algorithm from centres that k-means++ draws. None is empty."""
    draw = np.random.default_rng(seed)
    centres = points[[draw.integers(len(points))]]
    while len(centres) < count:
        apart = ((points[:, None] - centres[None]) ** 2).sum(-1).min(1)
        share = apart / apart.sum() if apart.sum() else np.full(len(points), 1 / len(points))
        centres = np.concatenate((centres, points[[draw.choice(len(points), p=share)]]))
    labels = np.zeros(len(points), np.int64)
    for _ in range(_ROUNDS):
        apart = ((points[:, None] - centres[None]) ** 2).sum(-1)
        labels = apart.argmin(1)
        for label in range(count):
            if not (labels == label).any():
                # The point that its centre fits worst, and that is not alone, begins a cluster of its own.
                alone = np.bincount(labels, minlength=count)[labels] == 1
                labels[np.where(alone, -1, apart[np.arange(len(points)), labels]).argmax()] = label
        moved = np.stack([points[labels == label].mean(0) for label in range(count)])
        if np.allclose(moved, centres):
            break
        centres = moved
    return labels
