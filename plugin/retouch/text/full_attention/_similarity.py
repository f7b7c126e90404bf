"""Rows refreshed at intervals, and in between where their values changed most (dLLM-Cache)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from retouch.text._options import check_count, check_share
from retouch.text.full_attention._policy import NO_ROWS, Canvas, MemorylessPolicy, Moment, RowPlan


@dataclass(frozen=True)
class SimilarityCache(MemorylessPolicy):
    """dLLM-Cache (https://arxiv.org/abs/2506.06295): keys, values and what layers add are kept for all rows.

    The prompt is refreshed every ``prompt_interval`` forwards, the answer every ``answer_interval``. In the others,
    every layer computes the values of the whole answer, and all of those rows whose values differ most from the kept.

    Attributes:
        prompt_interval: Kp of the paper.
        answer_interval: Kr of the paper.
        share: rho of the paper: how much of the answer is computed between refreshes.
        near: also compute the rows whose logits are wanted, and those within so many rows of tokens that were just set;
            ``None``, as in the paper, leaves it to the similarity.
        whole_layers: so many layers, the first ones, compute all rows in every forward; 1 in d2Cache's implementation
            of the method, 0 in the paper.
    """

    prompt_interval: int = 50
    answer_interval: int = 7
    share: float = 0.25
    near: int | None = None
    whole_layers: int = 0

    def __post_init__(self) -> None:
        """Checks every number.

        Raises:
            SamplingError: one is out of its range.
        """
        check_count("prompt_interval", self.prompt_interval, 1)
        check_count("answer_interval", self.answer_interval, 1)
        check_count("whole_layers", self.whole_layers, 0)
        if self.near is not None:
            check_count("near", self.near, 0)
        check_share("share", self.share)

    def plan(self, canvas: Canvas, moment: Moment) -> RowPlan:
        """See :class:`MemorylessPolicy`."""
        every = canvas.every
        prompt, answer = np.split(every, [canvas.prompt])
        fixed = prompt if moment.step % self.prompt_interval == 0 else NO_ROWS
        if moment.step % self.answer_interval == 0:
            return RowPlan(np.concatenate((fixed, answer)))
        candidates = answer
        if self.near is not None:
            fixed = np.union1d(fixed, np.union1d(moment.targets, moment.near(self.near)))
            candidates = np.setdiff1d(answer, fixed, assume_unique=True)
        whole = min(self.whole_layers, canvas.spec.layers)
        rows = (every,) * whole + (fixed,) * (canvas.spec.layers - whole)
        return RowPlan(rows, candidates, int(self.share * len(candidates)))
