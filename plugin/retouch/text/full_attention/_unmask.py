"""Which masks of a block are set after a forward."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from retouch.errors import NonFiniteError, SamplingError
from retouch.text._model import Logits, Tokens
from retouch.text._options import check_count, check_share

Confidence = NDArray[np.float32]


class Measure(Enum):
    """How sure the model is of a token."""

    PROBABILITY = "probability"
    """The token's probability (LLaDA's low-confidence remasking, Dream's ``maskgit_plus``)."""
    MARGIN = "margin"
    """How much more probable it is than the next one (Dream's ``topk_margin``)."""
    ENTROPY = "entropy"
    """The distribution's negative entropy (Dream's ``entropy``)."""


@dataclass(frozen=True)
class UnmaskOptions:
    """How masks are set. Without ``steps``, ``threshold`` and ``factor``, one in every forward, the surest.

    Attributes:
        block: tokens of a block, which is filled before the next one is begun; ``None`` means the model's usual.
        steps: forwards that a block is spread over evenly (LLaDA's ``steps``).
        threshold: all masks are set whose probability is above this, and at least one (Fast-dLLM).
        factor: of the surest masks as many are set as keep ``(n + 1) * (1 - probability of the n-th)`` below this, and
            at least one (Fast-dLLM).
        measure: how sure the model is of a token.
        stop_at_end: whether a finished block with an end token ends the text; LLaDA fills all blocks.
    """

    block: int | None = None
    steps: int | None = None
    threshold: float | None = None
    factor: float | None = None
    measure: Measure = Measure.PROBABILITY
    stop_at_end: bool = False

    def __post_init__(self) -> None:
        """Checks every number.

        Raises:
            SamplingError: one is out of its range, two say how many masks to set, or the measure does not fit.
        """
        for name in ("block", "steps"):
            value = getattr(self, name)
            if value is not None:
                check_count(name, value, 1)
        if self.threshold is not None:
            check_share("threshold", self.threshold)
        if self.factor is not None and not self.factor > 0:
            raise SamplingError(f"Expected factor to be a number above 0, got {self.factor!r}.")
        if sum(value is not None for value in (self.steps, self.threshold, self.factor)) > 1:
            raise SamplingError("Expected one of steps, threshold and factor, got several. Leave all but one out.")
        if self.measure is not Measure.PROBABILITY and (self.threshold is not None or self.factor is not None):
            raise SamplingError(
                f"Expected Measure.PROBABILITY with threshold or factor, got {self.measure}: both are compared with "
                "probabilities. Ask for steps, or for that measure."
            )

    def transfers(self, step: int, masks: int) -> int:
        """How many of a block's masks, of which there were so many at first, are set in a step at least."""
        if self.steps is None:
            return 1
        return masks // self.steps + (step < masks % self.steps)


def likeliest(logits: Logits, mask_id: int, measure: Measure) -> tuple[Tokens, Confidence]:
    """The likeliest token of every row, never the mask, and how sure the model is of it.

    Raises:
        NonFiniteError: a logit is NaN, or all of a row's are infinite.
    """
    scores = logits.copy()
    scores[:, mask_id] = -np.inf
    shares = np.exp(scores - scores.max(-1, keepdims=True))
    shares /= shares.sum(-1, keepdims=True)
    if not np.isfinite(shares).all():
        raise NonFiniteError("The model's logits hold NaN or infinity. Check its weights, or export it in float32.")
    tokens: Tokens = scores.argmax(-1)
    if measure is Measure.ENTROPY:
        logs = np.log(shares, out=np.zeros_like(shares), where=shares > 0)
        return tokens, (shares * logs).sum(-1)
    top = np.partition(shares, -2, axis=-1)[:, -2:]
    return tokens, top[:, 1] - top[:, 0] if measure is Measure.MARGIN else top[:, 1]


def surest(confidence: Confidence, options: UnmaskOptions, least: int) -> NDArray[np.int64]:
    """Which of a block's masks are set, the surest first.

    Args:
        confidence: of every mask.
        options: how many are set.
        least: so many at least.
    """
    order: NDArray[np.int64] = np.argsort(-confidence, kind="stable")
    count = min(least, len(order))
    if options.threshold is not None:
        count = max(1, int((confidence > np.float32(options.threshold)).sum()))
    if options.factor is not None:
        ranks = np.arange(1, len(order) + 1)
        fits = np.flatnonzero((ranks + 1) * (1 - confidence[order]) < options.factor)
        count = max(1, int(fits[-1]) + 1 if fits.size else 1)
    return order[:count]
