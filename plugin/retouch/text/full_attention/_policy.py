"""What every cache of a model with full attention is: a choice of the rows that a step computes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from retouch.bundle import ClustersSpec, DecoderSpec
from retouch.errors import SamplingError
from retouch.text._step import Mask

Rows = NDArray[np.int64]

NO_ROWS: Rows = np.zeros(0, np.int64)


@dataclass(frozen=True, eq=False)
class Canvas:
    """A text that is about to be filled: what a policy plans for. It belongs to one sequence of one request.

    Attributes:
        spec: the model's shape.
        rows: tokens of the text, masks among them.
        prompt: how many of them, the first ones, are the prompt.
        clusters: the model's clusters of positions, if it has some.
    """

    spec: DecoderSpec
    rows: int
    prompt: int
    clusters: ClustersSpec | None = None

    @property
    def every(self) -> Rows:
        """All rows."""
        return np.arange(self.rows)


@dataclass(frozen=True, eq=False)
class Moment:
    """Where a text is when the next forward is planned.

    Attributes:
        step: forwards so far.
        block_step: forwards since the block was begun.
        tokens: all tokens.
        masked: which of them are masks.
        block: the block that is being filled: its first row, and the one behind its last.
        just_set: rows whose tokens the last step set.
        set_count: tokens set so far.
        targets: rows whose logits are wanted.
    """

    step: int
    block_step: int
    tokens: Rows
    masked: Mask
    block: tuple[int, int]
    just_set: Rows
    set_count: int
    targets: Rows

    @property
    def block_rows(self) -> Rows:
        """The rows of the block, and those that its tokens are predicted at."""
        return np.union1d(np.arange(*self.block), self.targets)

    def near(self, reach: int) -> Rows:
        """The rows within so many rows of those whose tokens were just set, and these."""
        reached = np.zeros(len(self.tokens), bool)
        for row in self.just_set.tolist():
            reached[max(row - reach, 0) : row + reach + 1] = True
        return np.flatnonzero(reached)

    @property
    def masked_share(self) -> float:
        """How much of the text is masked."""
        return float(self.masked.mean())


@dataclass(frozen=True, eq=False)
class RowPlan:
    """What a forward computes; everything else is taken from what earlier ones left behind.

    Attributes:
        rows: the rows to compute: in all layers, or in each.
        candidates: rows whose values are computed in every layer to see how much they changed.
        count: how many of them, those that changed most, are computed whole.
        context: the rows that computed ones see; ``None`` means all.
        keep: share of earlier values that is kept in computed ones.
        revise: all tokens that were set are read again, and replaced where another has a confidence above this.

    Raises:
        SamplingError: no graph computes this.
    """

    rows: Rows | tuple[Rows, ...]
    candidates: Rows = field(default_factory=lambda: NO_ROWS)
    count: int = 0
    context: Rows | None = None
    keep: float = 0.0
    revise: float | None = None

    def __post_init__(self) -> None:
        """Checks what a graph would not tell."""
        if len(self.candidates) and self.keep:
            raise SamplingError("Expected a plan with either candidates or keep, got both. Leave one out.")
        if not 0 <= self.count <= len(self.candidates):
            raise SamplingError(f"Expected a count of 0 to {len(self.candidates)} candidates, got {self.count}.")

    def by_layer(self, layers: int) -> tuple[Rows, ...]:
        """The rows of every layer.

        Raises:
            SamplingError: there are rows for another number of layers.
        """
        if not isinstance(self.rows, tuple):
            return (self.rows,) * layers
        if len(self.rows) != layers:
            raise SamplingError(f"Expected a plan with rows for each of {layers} layers, got {len(self.rows)}.")
        return self.rows


class Planner(Protocol):
    """A policy at work on one text."""

    def plan(self, moment: Moment) -> RowPlan:
        """What the next forward computes. The first one computes all rows, whatever is planned."""


class CachePolicy(Protocol):
    """A cache of a model with full attention. Policies hold numbers only; a text's planner holds what it remembers."""

    def start(self, canvas: Canvas) -> Planner:
        """A planner for one text.

        Raises:
            SamplingError: the policy does not fit the model.
        """


class MemorylessPolicy(ABC):
    """A policy whose plans depend on the moment alone."""

    def start(self, canvas: Canvas) -> Planner:
        """See :class:`CachePolicy`."""
        return _Memoryless(self, canvas)

    @abstractmethod
    def plan(self, canvas: Canvas, moment: Moment) -> RowPlan:
        """What the next forward of a text computes."""


@dataclass(frozen=True, eq=False)
class _Memoryless:
    policy: MemorylessPolicy
    canvas: Canvas

    def plan(self, moment: Moment) -> RowPlan:
        return self.policy.plan(self.canvas, moment)
