"""One text while its masks are filled: forwards as a policy plans them, and what they came to."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from retouch.text._model import Logits, TextModel, Tokens
from retouch.text._step import Mask
from retouch.text.full_attention._audit import Audit
from retouch.text.full_attention._cost import RowCost
from retouch.text.full_attention._policy import (
    NO_ROWS,
    CachePolicy,
    Canvas,
    Moment,
    RowPlan,
    Rows,
)
from retouch.text.full_attention._states import RowStates


@dataclass
class RowTally:
    """What forwards came to.

    Attributes:
        forwards: number of forwards.
        computed: rows that were computed, over all layers.
        total: rows that there were, over all layers and forwards.
        flops: floating-point operations.
        full_flops: those of the same forwards without a cache.
        ages: summed over forwards, the mean age in steps of what was used.
        oldest: the greatest age of anything that was used.
    """

    forwards: int = 0
    computed: int = 0
    total: int = 0
    flops: int = 0
    full_flops: int = 0
    ages: float = 0.0
    oldest: int = 0


@dataclass(frozen=True, eq=False)
class Reading:
    """What a forward gave.

    Attributes:
        logits: of the positions that were asked for [P, vocabulary].
        revisable: positions of tokens that were set and may be revised.
        revised_logits: their logits.
        revise: the confidence above which another token replaces one of them.
    """

    logits: Logits
    revisable: Rows
    revised_logits: Logits
    revise: float


class Denoising:
    """A text of masks behind a prompt, with states of its own.

    Attributes:
        tokens: all tokens [N].
        prompt: how many of them, the first ones, are the prompt.
        states: what forwards left behind.
        block: the block that was read last: its first row, and the one behind its last.
        block_step: forwards since that block was begun.
        tally: what forwards came to so far.
        audit: runs the model itself beside every forward, if that was asked for.
    """

    def __init__(
        self, model: TextModel, policy: CachePolicy, tokens: Tokens, prompt: int, *, audit: bool = False
    ) -> None:
        """Computes nothing yet.

        Args:
            model: the model.
            policy: which rows to compute.
            tokens: the prompt and masks [N].
            prompt: tokens of the prompt.
            audit: whether to run the model itself beside every forward.

        Raises:
            SamplingError: the policy does not fit the model.
        """
        spec = model.spec
        canvas = Canvas(spec, len(tokens), prompt, model.bundle.clusters)
        self.tokens = tokens.copy()
        self.tally = RowTally()
        self.audit = Audit(model, len(tokens)) if audit else None
        self._canvas = canvas
        self._planner = policy.start(canvas)
        self.prompt = prompt
        self.states = RowStates(model, len(tokens))
        self._cost = RowCost(spec)
        self._computed = np.zeros((spec.layers, len(tokens)), np.int64)
        self._just_set: Rows = NO_ROWS
        self.block = (-1, -1)
        self.block_step = self._set_count = 0

    @property
    def masked(self) -> Mask:
        """Which tokens are masks."""
        return np.asarray(self.tokens == self._canvas.spec.mask_id)

    def read(self, block: tuple[int, int], positions: Rows) -> Reading:
        """The logits of tokens at positions [P] of a block, from one forward.

        Args:
            block: the block that is being filled: its first row, and the one behind its last.
            positions: whose logits are wanted.
        """
        self.block_step = self.block_step + 1 if block == self.block else 0
        self.block = block
        plan, targets = self._planned(positions)
        revisable = self._revisable() if plan.revise is not None else NO_ROWS
        wanted = np.concatenate((targets, self._predicted_at(revisable)))
        logits, rows = self.states.forward(self.tokens, plan, wanted)
        self._account(plan, rows, len(wanted))
        count = len(targets)
        if self.audit is not None:
            self.audit.compare(self.tokens, targets, logits[:count])
        return Reading(logits[:count], revisable, logits[count:], 1.0 if plan.revise is None else plan.revise)

    def set(self, positions: Rows, tokens: Tokens) -> None:
        """Put tokens in the place of masks, or of other tokens."""
        self._set_count += int(self.masked[positions].sum())
        self.tokens[positions] = tokens
        self._just_set = np.sort(positions)

    def _planned(self, positions: Rows) -> tuple[RowPlan, Rows]:
        step, targets = self.tally.forwards, self._predicted_at(positions)
        moment = Moment(
            step,
            self.block_step,
            self.tokens.copy(),
            self.masked,
            self.block,
            self._just_set,
            self._set_count,
            np.unique(targets),
        )
        plan = self._planner.plan(moment)
        return (RowPlan(self._canvas.every, revise=plan.revise) if step == 0 else plan), targets

    def _predicted_at(self, positions: Rows) -> Rows:
        """The rows that predict tokens."""
        return np.maximum(positions - self._canvas.spec.shift, 0)

    def _revisable(self) -> Rows:
        answer = ~self.masked
        answer[: self.prompt] = False
        return np.flatnonzero(answer)

    def _account(self, plan: RowPlan, rows: tuple[Rows, ...], logits: int) -> None:
        tally, cost, step = self.tally, self._cost, self.tally.forwards
        seen = self._canvas.rows if plan.context is None else len(plan.context)
        for layer, (own, planned) in enumerate(zip(rows, plan.by_layer(len(rows)), strict=True)):
            self._computed[layer, own] = step
            tally.computed += len(own)
            # A candidate that was planned as well is computed twice.
            tally.flops += (len(planned) + plan.count) * cost.row(layer, seen) + len(plan.candidates) * cost.values()
        tally.flops += logits * cost.logits()
        tally.full_flops += cost.full(self._canvas.rows, logits)
        tally.total += self._computed.size
        used = self._computed if plan.context is None else self._computed[:, plan.context]
        ages = step - used
        tally.ages += float(ages.mean())
        tally.oldest = max(tally.oldest, int(ages.max()))
        tally.forwards += 1
