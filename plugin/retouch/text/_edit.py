"""A finished text with some of its blocks settled anew."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum

import numpy as np

from retouch.text._choice import choose
from retouch.text._generation import EditReport
from retouch.text._model import Logits, Tokens
from retouch.text._reader import Reader
from retouch.text._sampler import BlockDiffusionSampler
from retouch.text._settle import Tally
from retouch.text._spans import Draft, Patch
from retouch.text._step import Callback, Mask


class EditMode(Enum):
    """What an edit does with blocks behind a span. Their tokens stay, but for ``VERIFY``."""

    EXACT = "exact"
    """They are read again: keys and values become what reading the edited text from its start would give."""
    FROZEN = "frozen"
    """They are not read. Keys and values stay those of the base, as far as blocks do not move."""
    VERIFY = "verify"
    """They are read again, and tokens that the model now sees otherwise are chosen anew."""


@dataclass(frozen=True)
class Plan:
    """How an edit goes.

    Attributes:
        mode: what is done with blocks behind a span.
        disagreement: ``VERIFY`` chooses tokens anew where another has a confidence above this.
        seed: seed of what is drawn.
        callback: called after every change.
    """

    mode: EditMode
    disagreement: float
    seed: int
    callback: Callback | None = None


class Revision:
    """An edit under way.

    Attributes:
        tokens: the text to the end of its last block.
        settled: number of blocks in which tokens were chosen anew.
        refreshed: number of blocks that were read again as they were.
        kept: number of blocks that were not read.
        disagreed: number of tokens that ``VERIFY`` had chosen anew.
        tally: what settling took.
    """

    def __init__(self, sampler: BlockDiffusionSampler, reader: Reader, draft: Draft, plan: Plan) -> None:
        self.tokens = draft.tokens.copy()
        self.settled = self.refreshed = self.kept = self.disagreed = 0
        self.tally = Tally()
        self._spec = sampler.spec
        self._sampler = sampler
        self._reader = reader
        self._draft = draft
        self._plan = plan

    def run(self) -> None:
        """Settles what has masks, reads what has to be read, in the order of the text."""
        count = len(self.tokens) // self._spec.block
        first = min(self._draft.touched, default=count)
        self.kept += first
        index = first
        while index < count:
            if (self._block(index) == self._spec.mask_id).any():
                self._settle(index)
                index += 1
            else:
                index = self._pass_over(index, self._next_masked(index, count))
        self._reader.finish()

    def report(self, base: Tokens, changes: Sequence[Patch], reason: str, seconds: float) -> EditReport:
        """What the edit took.

        Args:
            base: the text before.
            changes: what was put in.
            reason: why the plan's mode was used.
            seconds: wall time.
        """
        if self._draft.moved_from is None:
            changed = int(np.count_nonzero(self.tokens[: self._draft.length] != base))
        else:
            changed = sum(max(len(patch.tokens), patch.end - patch.start) for patch in changes) + self.disagreed
        return EditReport(
            mode=self._plan.mode.value,
            reason=reason,
            forwards=self._reader.reads,
            recomputed=self._reader.tokens,
            settled=self.settled,
            refreshed=self.refreshed,
            kept=self.kept,
            changed=changed,
            disagreed=self.disagreed,
            edited=self.tally.edited,
            oscillations=self.tally.oscillations,
            seconds=seconds,
        )

    def _settle(self, index: int) -> None:
        block, start = self._block(index), index * self._spec.block
        fixed = block != self._spec.mask_id
        block[:] = self._sampler.settle_block(
            start, block, fixed, self._reader, self._plan.seed, self.tally, self._plan.callback
        )
        self.settled += 1

    def _pass_over(self, index: int, end: int) -> int:
        """The block at which to go on after one or more without masks."""
        if self._plan.mode is EditMode.VERIFY:
            return self._verify(index, end)
        if self._plan.mode is EditMode.EXACT:
            self._postpone(index, end)
            return end
        if index in self._draft.touched:
            self._postpone(index, index + 1)
        else:
            self.kept += 1
        return index + 1

    def _postpone(self, index: int, end: int) -> None:
        size = self._spec.block
        self._reader.postpone(self.tokens[index * size : end * size].copy(), index * size)
        self.refreshed += end - index

    def _verify(self, index: int, end: int) -> int:
        """Reads the blocks; masks what the model sees otherwise in the first one that has such tokens."""
        size = self._spec.block
        logits = self._reader.read(self.tokens[index * size : end * size].copy(), index * size)
        for block in range(index, end):
            rows = logits[(block - index) * size :][:size]
            doubted = self._doubted(block, rows)
            if doubted.any():
                self._block(block)[doubted] = self._spec.mask_id
                self.disagreed += int(doubted.sum())
                self._settle(block)
                return block + 1
            self.refreshed += 1
        return end

    def _doubted(self, index: int, logits: Logits) -> Mask:
        """Where another token is likely enough: not in the prompt, nor behind the end, nor in what an edit put in."""
        block, draft = self._block(index), self._draft
        if index in draft.touched:
            return np.zeros(len(block), bool)
        choice = choose(logits, block, replace(self._sampler.options, temperature=0.0), self._spec.mask_id, None)
        positions = np.arange(len(block)) + index * self._spec.block
        free = (positions >= draft.prompt_tokens) & (positions < draft.length)
        sure = choice.confidence > np.float32(self._plan.disagreement)
        doubted: Mask = free & sure & (choice.tokens != block)
        return doubted

    def _block(self, index: int) -> Tokens:
        size = self._spec.block
        return self.tokens[index * size : (index + 1) * size]

    def _next_masked(self, index: int, count: int) -> int:
        size = self._spec.block
        masked = np.flatnonzero(self.tokens[index * size :] == self._spec.mask_id)
        return index + int(masked[0]) // size if masked.size else count
