"""A direction in the space of conditions, and how far to go along it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from retouch.errors import SamplingError
from retouch.sampling._conditions import Conditions

Array = NDArray[Any]


class Injection(Enum):
    """How a direction acts on a condition ``c``, with the direction ``d = target - source`` and strength ``s``."""

    REPLACE = "replace"
    """``(1 - s) c + s target``: towards the target, whatever the condition was."""
    ADD = "add"
    """``c + s d``: the difference, on top of the condition."""
    MULTIPLY = "multiply"
    """``c + s (c . e) e`` with ``e = d / |d|`` per token: more, or less, of what the condition has along it."""


@dataclass(frozen=True, eq=False)
class Direction:
    """A direction from one condition to another.

    Cross-attention projects text embeddings to keys and values by matrices, so that what is added to an embedding is
    added, projected, to every layer's keys and values: the hoisted ones follow without a rewrite of the graph.

    Attributes:
        source: conditions at strength 0, by input name; floating-point arrays, the last axis being the features.
        target: the same inputs at strength 1.
        injection: how it acts.
    """

    source: Mapping[str, ArrayLike] = field(repr=False)
    target: Mapping[str, ArrayLike] = field(repr=False)
    injection: Injection = Injection.ADD

    def __post_init__(self) -> None:
        if not self.source or set(self.source) != set(self.target):
            raise SamplingError(
                f"Expected source and target to name the same inputs, at least one, got {sorted(self.source)} and "
                f"{sorted(self.target)}."
            )
        for name in self.source:
            one, other = np.asarray(self.source[name]), np.asarray(self.target[name])
            if one.shape != other.shape or one.dtype.kind != "f" or other.dtype.kind != "f":
                raise SamplingError(
                    f"Expected floating-point arrays of one shape for {name!r}, got {one.dtype} {one.shape} and "
                    f"{other.dtype} {other.shape}."
                )

    def at(self, conditions: Conditions, strength: float) -> Conditions:
        """The conditions, moved along the direction; the negative side stays.

        Raises:
            SamplingError: the strength is not finite, or the conditions lack an input of the direction.
        """
        if not np.isfinite(strength):
            raise SamplingError(f"Expected a finite strength, got {strength!r}.")
        missing = set(self.source) - set(conditions.positive)
        if missing:
            raise SamplingError(
                f"Expected conditions with the direction's inputs, got {sorted(conditions.positive)}, which lack "
                f"{sorted(missing)}."
            )
        moved = {name: self._moved(name, np.asarray(conditions.positive[name]), strength) for name in self.source}
        return Conditions({**conditions.positive, **moved}, conditions.negative, conditions.guidance)

    def _moved(self, name: str, condition: Array, strength: float) -> Array:
        source, target = np.asarray(self.source[name]), np.asarray(self.target[name])
        if condition.shape != source.shape:
            raise SamplingError(
                f"Expected condition {name!r} of the direction's shape {source.shape}, got {condition.shape}."
            )
        scale = condition.dtype.type(strength)
        if self.injection is Injection.REPLACE:
            moved = condition + scale * (target - condition)
        elif self.injection is Injection.ADD:
            moved = condition + scale * (target - source)
        else:
            unit = _unit(target - source)
            moved = condition + scale * np.sum(condition * unit, axis=-1, keepdims=True) * unit
        return np.asarray(moved, condition.dtype)


def _unit(direction: Array) -> Array:
    """The direction with length one along the last axis, zero where it is zero."""
    length = np.linalg.norm(direction, axis=-1, keepdims=True)
    unit: Array = np.divide(direction, length, out=np.zeros_like(direction), where=length > 0)
    return unit
