"""Block after block, each denoised over what came before it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from retouch.bundle import DecoderSpec
from retouch.errors import SamplingError
from retouch.text._model import Context, Tokens, WideningContext
from retouch.text._multi_block import GroupTask, edit_group
from retouch.text._options import QUALITY, EosRule, SamplerOptions, check_count
from retouch.text._reader import Reader
from retouch.text._settle import BlockTask, Tally, settle
from retouch.text._step import Callback, Mask, Step
from retouch.tokens import check_tokens


@dataclass(frozen=True, eq=False)
class FinishedBlock:
    """A block that no longer changes.

    Attributes:
        start: position of its first token.
        tokens: all of its tokens, those of the prompt and those behind the end included.
        new: those that belong to the answer.
        last: whether it is the last one.
    """

    start: int
    tokens: Tokens = field(repr=False)
    new: Tokens
    last: bool


class BlockDiffusionSampler:
    """Continues texts by block diffusion, as LLaDA2.x does.

    Attributes:
        spec: the model's shape.
        options: how to sample.
    """

    def __init__(self, spec: DecoderSpec, options: SamplerOptions = QUALITY) -> None:
        self.spec = spec
        self.options = options

    def rows(self, prompt: int, length: int) -> int:
        """How many tokens a context has to hold for prompts and answers of these lengths.

        Raises:
            SamplingError: the text would be longer than the model's longest.
        """
        check_count("the number of new tokens", length, 1)
        block = self.spec.block
        rows = -(-(prompt + length) // block) * block
        if rows > self.spec.positions:
            raise SamplingError(
                f"Expected at most {self.spec.positions // block * block} tokens of prompt and answer together, got "
                f"{prompt} + {length}. Ask for fewer, or shorten the prompt."
            )
        return rows

    def blocks(
        self,
        context: Context,
        prompt: Tokens,
        length: int,
        *,
        seed: int = 0,
        callback: Callback | None = None,
        tally: Tally | None = None,
        reader: Reader | None = None,
    ) -> Iterator[FinishedBlock]:
        """The blocks of an answer, each as soon as it is finished. The prompt is never edited.

        Args:
            context: an empty context with enough :meth:`rows`.
            prompt: the prompt's tokens; may be empty.
            length: the most new tokens.
            seed: seed of what is drawn; every step of every block draws from a generator of its own.
            callback: called after every change. What it raises ends the sampling.
            tally: is added to; for reports.
            reader: is read through; for reports.

        Raises:
            FeedError: the prompt holds the mask, or an id that the model does not have.
            SamplingError: the text would be longer than the model's longest.
        """
        spec = self.spec
        if self.options.multi_block > 1 and not isinstance(context, WideningContext):
            raise SamplingError(
                f"Expected a single text with a cache for multi_block={self.options.multi_block}: only its reads can "
                "let blocks see each other. Use cache=True and no batch, or multi_block=1."
            )
        prompt = check_tokens(prompt, spec.vocabulary, spec.mask_id, "the prompt")
        text = np.full(self.rows(len(prompt), length), spec.mask_id)
        text[: len(prompt)] = prompt
        reader = Reader(context) if reader is None else reader
        first = len(prompt) // spec.block * spec.block
        if first:
            reader.read(text[:first], 0)
        yield from self._from(
            first, text, len(prompt), length, reader, seed, Tally() if tally is None else tally, callback
        )

    def settle_block(
        self,
        start: int,
        tokens: Tokens,
        fixed: Mask,
        reader: Reader,
        seed: int,
        tally: Tally,
        callback: Callback | None = None,
    ) -> Tokens:
        """A block as it ends, read or to be read as such.

        Args:
            start: position of its first token.
            tokens: its tokens, masks among them.
            fixed: which of them must stay.
            reader: reads it; has read all before it.
            seed: seed of what is drawn.
            tally: is added to.
            callback: called after every change.
        """
        spec = self.spec

        def told(block: Tokens, filled: Mask, edited: Mask) -> None:
            if callback is not None:
                callback(Step(start, block, filled, edited))

        task = BlockTask(
            tokens, fixed, partial(reader.read, start=start), lambda step: _generator(seed, start, step), told
        )
        settled = settle(task, self.options, spec.mask_id, spec.eos_id, tally)
        if not settled.was_read:
            reader.postpone(settled.tokens, start)
        return settled.tokens

    def _from(
        self,
        first: int,
        text: Tokens,
        prompt: int,
        length: int,
        reader: Reader,
        seed: int,
        tally: Tally,
        callback: Callback | None,
    ) -> Iterator[FinishedBlock]:
        block, wanted = self.spec.block, prompt + length
        group = block * self.options.multi_block
        waiting = first  # start of the first block that was not given out
        for start in range(first, len(text), block):
            end = start + block
            fixed = np.arange(start, end) < prompt
            text[start:end] = self.settle_block(start, text[start:end], fixed, reader, seed, tally, callback)
            stop = self._ends(text[max(prompt, start) : min(end, wanted)])
            if not (stop or end % group == 0 or end == len(text)):
                continue
            if end - waiting > block:
                self._edit_group(waiting, text[waiting:end], prompt, reader, seed, tally, callback)
            for place in range(waiting, end, block):
                finished = self._finished(place, text, prompt, wanted)
                yield finished
                if finished.last:
                    return
            waiting = end

    def _finished(self, start: int, text: Tokens, prompt: int, wanted: int) -> FinishedBlock:
        end = start + self.spec.block
        answer = text[max(prompt, start) : min(end, wanted)].copy()
        stop = self._ends(answer)
        new = answer[: int(np.argmax(answer == self.spec.eos_id)) + 1] if stop else answer
        return FinishedBlock(start, text[start:end].copy(), new, stop or end == len(text))

    def _ends(self, answer: Tokens) -> bool:
        return self.options.eos is not EosRule.IGNORED and bool((answer == self.spec.eos_id).any())

    def _edit_group(
        self,
        start: int,
        tokens: Tokens,
        prompt: int,
        reader: Reader,
        seed: int,
        tally: Tally,
        callback: Callback | None,
    ) -> None:
        """Edits finished blocks together, in place, and has them read again as the blocks that they are."""
        block = self.spec.block

        def told(now: Tokens, edited: Mask) -> None:
            for offset in range(0, len(now), block):
                part = slice(offset, offset + block)
                if callback is not None and edited[part].any():
                    callback(Step(start + offset, now[part], np.zeros(block, bool), edited[part]))

        task = GroupTask(
            tokens.copy(),
            np.arange(start, start + len(tokens)) < prompt,
            partial(reader.read_widened, start=start, block=block * self.options.multi_block),
            lambda step: np.random.default_rng((seed, start, step, self.options.multi_block)),
            told,
        )
        tokens[:] = edit_group(task, self.options, self.spec.mask_id, tally)
        reader.postpone(tokens.copy(), start)


def _generator(seed: int, start: int, step: int) -> np.random.Generator:
    return np.random.default_rng((seed, start, step))
