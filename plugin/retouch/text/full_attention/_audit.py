"""What a cache makes of a model: each forward beside the model's own, of the same tokens."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from retouch.text._model import Logits, TextModel, Tokens
from retouch.text.full_attention._policy import RowPlan, Rows
from retouch.text.full_attention._states import RowStates


@dataclass(frozen=True)
class CacheErrors:
    """How far forwards with a cache were from the model's own, at every position that could have been set.

    Attributes:
        positions: how many, over all forwards.
        agreed: share of them with the same likeliest token.
        divergence: mean Kullback-Leibler divergence of the cache's distribution from the model's, in nats.
        worst: the greatest.
    """

    positions: int
    agreed: float
    divergence: float
    worst: float

    def __str__(self) -> str:
        return (
            f"{self.agreed:.1%} of {self.positions} choices are the model's own; divergence {self.divergence:.4f} nats "
            f"a position, at most {self.worst:.3f}"
        )


class Audit:
    """Runs the model itself beside a cache.

    Attributes:
        seconds: wall time that this took.
    """

    def __init__(self, model: TextModel, rows: int) -> None:
        """Compares nothing yet.

        Args:
            model: the model.
            rows: tokens of the text.
        """
        self.seconds = 0.0
        self._states = RowStates(model, rows)
        self._mask_id = model.spec.mask_id
        self._agreed = 0
        self._divergences: list[NDArray[np.float64]] = []

    def compare(self, tokens: Tokens, targets: Rows, logits: Logits) -> None:
        """Compares a forward's logits with the model's.

        Args:
            tokens: all tokens of the text.
            targets: rows.
            logits: what the forward gave for them.
        """
        started = time.perf_counter()
        exact, _ = self._states.forward(tokens, RowPlan(np.arange(self._states.rows)), targets)
        wanted, got = (log_shares(scores, self._mask_id) for scores in (exact, logits))
        self._agreed += int((wanted.argmax(-1) == got.argmax(-1)).sum())
        possible = np.isfinite(wanted)
        gaps = np.subtract(wanted, got, out=np.zeros_like(wanted), where=possible)
        self._divergences.append((np.exp(wanted) * gaps).sum(-1))
        self.seconds += time.perf_counter() - started

    def errors(self) -> CacheErrors:
        """What was found so far; something has to be compared first."""
        found = np.concatenate(self._divergences)
        return CacheErrors(len(found), self._agreed / len(found), max(float(found.mean()), 0.0), float(found.max()))


def log_shares(logits: Logits, mask_id: int) -> NDArray[np.float64]:
    """Logarithms of the tokens' probabilities, without the mask: its own is minus infinity."""
    scores = logits.astype(np.float64)
    scores[:, mask_id] = -np.inf
    scores -= scores.max(-1, keepdims=True)
    return np.asarray(scores - np.log(np.exp(scores).sum(-1, keepdims=True)))
