"""What a generation is asked for, beside the latents and the time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from retouch.errors import SamplingError

Feeds = Mapping[str, NDArray[Any]]


@dataclass(frozen=True, eq=False)
class Conditions:
    """The denoiser's feeds that stay the same over all steps.

    Attributes:
        positive: what is asked for, by input name; text embeddings of shape [1, tokens, width], for example.
        negative: the same inputs for classifier-free guidance (Ho & Salimans, 2022); ``None`` switches it off.
        guidance: scale of guidance: the output is ``negative + guidance * (positive - negative)``.
    """

    positive: Mapping[str, ArrayLike] = field(repr=False)
    negative: Mapping[str, ArrayLike] | None = field(default=None, repr=False)
    guidance: float = 1.0

    def __post_init__(self) -> None:
        if not np.isfinite(self.guidance):
            raise SamplingError(f"Expected a finite guidance scale, got {self.guidance!r}.")
        if self.negative is not None and set(self.negative) != set(self.positive):
            raise SamplingError(
                f"Expected the negative conditions to name the inputs of the positive ones, {sorted(self.positive)}, "
                f"got {sorted(self.negative)}. Give both the same inputs."
            )

    def branches(self) -> tuple[Feeds, ...]:
        """The feeds of every evaluation of a step: the negative ones first, if there are any."""
        sides = (self.positive,) if self.negative is None else (self.negative, self.positive)
        return tuple({name: np.asarray(value) for name, value in side.items()} for side in sides)

    def guided(self, outputs: tuple[NDArray[Any], ...]) -> NDArray[Any]:
        """The guided output from those of the branches, elementwise in their dtype."""
        if len(outputs) == 1:
            return outputs[0]
        negative, positive = outputs
        guided: NDArray[Any] = negative + negative.dtype.type(self.guidance) * (positive - negative)
        return guided
