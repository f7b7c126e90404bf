"""A block, filled and edited until it stays as it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from retouch.text._choice import Choice, choose
from retouch.text._model import Logits, Tokens
from retouch.text._options import EosRule, MaskChoice, Oscillation, SamplerOptions
from retouch.text._step import Mask


@dataclass
class Tally:
    """What settling blocks took.

    Attributes:
        forwards: reads of a block.
        filled: masked tokens that were set (M2T).
        edited: tokens that were replaced (T2T).
        mask_choices: how often the mask was the likeliest token at a masked position.
        oscillations: blocks that were stopped because their edits went in circles.
        exhausted: blocks that ended because their budget of edits was used up.
    """

    forwards: int = 0
    filled: int = 0
    edited: int = 0
    mask_choices: int = 0
    oscillations: int = 0
    exhausted: int = 0


@dataclass(frozen=True, eq=False)
class BlockTask:
    """A block to settle.

    Attributes:
        tokens: its tokens, masks among them [B].
        fixed: which of them must stay [B].
        read: gives the logits [B, vocabulary] for tokens [B].
        draw: gives what a step is drawn from.
        told: called with tokens, filled and edited positions after every change.
    """

    tokens: Tokens
    fixed: Mask
    read: Callable[[Tokens], Logits]
    draw: Callable[[int], np.random.Generator]
    told: Callable[[Tokens, Mask, Mask], None] = lambda *_: None


@dataclass(frozen=True, eq=False)
class Settled:
    """A block as it ended.

    Attributes:
        tokens: its tokens, without masks.
        was_read: whether the last read was of exactly these tokens, so that a cache holds their keys and values.
    """

    tokens: Tokens
    was_read: bool


def settle(task: BlockTask, options: SamplerOptions, mask_id: int, eos_id: int, tally: Tally) -> Settled:
    """The block after the loop of LLaDA2.1 (its remote code's ``generate``; SGLang's ``JointThreshold``).

    In every step masked tokens are set whose confidence is above the threshold, or the most confident one, and, from
    the same logits, tokens that are there are replaced where another is confident enough. Without edits the loop is
    LLaDA2.0's. It ends when a read changes nothing, when a block without masks was read ``max_post_steps`` times, when
    edits go in circles, or, without edits, with the last mask.
    """
    return _Loop(task, options, mask_id, eos_id, tally).run()


class _Loop:
    def __init__(self, task: BlockTask, options: SamplerOptions, mask_id: int, eos_id: int, tally: Tally) -> None:
        self._task = task
        self._options = options
        self._mask_id = mask_id
        self._eos_id = eos_id
        self._tally = tally
        self._trail: list[Tokens] = []  # the block as it was in every read without masks
        self._edits = np.zeros(len(task.tokens), np.int64)  # since there are no masks

    def run(self) -> Settled:
        tokens, budget = self._task.tokens.copy(), self._options.max_post_steps
        # Every read sets a mask or uses up the budget; only a choice that is itself the mask does neither.
        for step in range(len(tokens) + budget + 1):
            masked = tokens == self._mask_id
            if not masked.any():
                if not self._options.edits:
                    return Settled(tokens, was_read=False)
                if len(self._trail) == budget:
                    self._tally.exhausted += 1
                    return Settled(tokens, was_read=False)
                self._trail.append(tokens)
            before, (tokens, filled, edited) = tokens, self._step(tokens, masked, step)
            if not (filled | edited).any():
                return Settled(tokens, was_read=True)
            self._task.told(tokens, filled, edited)
            ended = self._ended(tokens, edited)
            if ended is not None:
                if (ended != tokens).any():
                    self._task.told(ended, tokens == self._mask_id, (ended != tokens) & (tokens != self._mask_id))
                return Settled(ended, was_read=False)
            if self._options.greedy and np.array_equal(tokens, before):
                break  # it chose masks for masks, and would for ever
        return Settled(self._without_masks(tokens), was_read=False)

    def _step(self, tokens: Tokens, masked: Mask, step: int) -> tuple[Tokens, Mask, Mask]:
        """The block after a read, and where it was filled and edited."""
        choice = self._choice(tokens, self._options, step)
        self._tally.mask_choices += choice.masks
        filled = self._to_fill(choice, masked, step)
        edited = np.zeros_like(masked)
        threshold = self._options.edit_threshold
        if threshold is not None and self._options.edits:
            sure = choice.confidence > np.float32(threshold)
            edited = ~masked & ~self._task.fixed & sure & (choice.tokens != tokens)
        self._tally.filled += int(filled.sum())
        self._tally.edited += int(edited.sum())
        return np.where(filled | edited, choice.tokens, tokens), filled, edited

    def _choice(self, tokens: Tokens, options: SamplerOptions, step: int) -> Choice:
        self._tally.forwards += 1
        draw = None if options.greedy else self._task.draw(step)
        return choose(self._task.read(tokens), tokens, options, self._mask_id, draw)

    def _to_fill(self, choice: Choice, masked: Mask, step: int) -> Mask:
        sure = masked & (choice.confidence > np.float32(self._options.threshold))
        least = min(self._options.transfers(step, len(masked)), int(np.count_nonzero(masked)))
        if int(np.count_nonzero(sure)) >= least:
            return sure
        # One token is the usual case, and cheaper found than sorted for.
        worth = np.where(masked, choice.confidence, -1)
        best = np.zeros_like(masked)
        best[worth.argmax() if least == 1 else np.argsort(-worth, kind="stable")[:least]] = True
        return best

    def _ended(self, tokens: Tokens, edited: Mask) -> Tokens | None:
        """The block as it ends, if the change that was made ends it."""
        masked = tokens == self._mask_id
        if self._options.eos is EosRule.COMMITTED:
            before_masks = np.cumsum(masked) == 0
            ends = before_masks & (tokens == self._eos_id) & ~self._task.fixed
            if ends.any():
                return np.where(masked, self._eos_id, tokens)
        if self._options.oscillation is Oscillation.STOP and self._trail and not masked.any():
            return self._at_rest(tokens, edited)
        return None

    def _at_rest(self, tokens: Tokens, edited: Mask) -> Tokens | None:
        """Where a block that goes in circles ends."""
        if not self._options.greedy:
            self._edits += edited
            if self._edits.max() <= self._options.patience:
                return None
            self._tally.oscillations += 1
            return tokens
        again = [index for index, seen in enumerate(self._trail) if np.array_equal(seen, tokens)]
        if not again:
            return None
        # Reads depend on the tokens alone, so all further ones are known.
        self._tally.oscillations += 1
        period = len(self._trail) - again[0]
        return self._trail[again[0] + (self._options.max_post_steps - again[0]) % period]

    def _without_masks(self, tokens: Tokens) -> Tokens:
        masked = tokens == self._mask_id
        if not masked.any():
            return tokens
        options = replace(self._options, mask_choice=MaskChoice.EXCLUDED)
        choice = self._choice(tokens, options, len(tokens) + options.max_post_steps + 1)
        self._tally.filled += int(masked.sum())
        tokens = np.where(masked, choice.tokens, tokens)
        self._task.told(tokens, masked, np.zeros_like(masked))
        return tokens
