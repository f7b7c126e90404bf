"""An answer under way."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Protocol, Self

import numpy as np

from retouch.errors import SamplingError
from retouch.text._generation import Generation, TextReport, new_id, read_only
from retouch.text._model import Context, KeysValues, StatefulContext, Tokens
from retouch.text._reader import Reader
from retouch.text._sampler import BlockDiffusionSampler, FinishedBlock
from retouch.text._settle import Tally
from retouch.text._step import Callback


class Keeper(Protocol):
    """What keeps finished texts."""

    def text_of(self, tokens: Tokens) -> str:
        """The text of tokens."""

    def keep(self, made: Generation, states: KeysValues) -> None:
        """Keep a text and the keys and values of its tokens."""


class TextStream(Iterator[FinishedBlock]):
    """An answer under way: an iterator of its blocks."""

    def __init__(
        self,
        keeper: Keeper,
        sampler: BlockDiffusionSampler,
        context: Context,
        prompt: Tokens,
        length: int,
        seed: int,
        *,
        record: bool,
        callback: Callback | None,
    ) -> None:
        self._keeper = keeper
        self._sampler = sampler
        self._context = context
        self._prompt = prompt
        self._seed = seed
        self._record = record
        self._tally = Tally()
        self._reader = Reader(context)
        self._started = time.perf_counter()
        self._blocks: list[FinishedBlock] = []
        self._made: Generation | None = None
        self._source = sampler.blocks(
            context, prompt, length, seed=seed, callback=callback, tally=self._tally, reader=self._reader
        )

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> FinishedBlock:
        block = next(self._source)
        self._blocks.append(block)
        if block.last:
            self._finish()
        return block

    @property
    def generation(self) -> Generation:
        """The whole, once the last block was taken.

        Raises:
            SamplingError: it was not.
        """
        if self._made is None:
            raise SamplingError("Expected the stream to be at its end. Take its blocks first, or call generate.")
        return self._made

    def _finish(self) -> None:
        prompt, size = self._prompt, self._sampler.spec.block
        answer = np.concatenate([block.new for block in self._blocks])
        whole = prompt[: len(prompt) // size * size]
        padded = read_only(np.concatenate((whole, *(block.tokens for block in self._blocks))))
        if self._record:
            self._reader.finish()
        report = TextReport.of(
            self._tally,
            tokens=len(answer),
            prefilled=len(whole),
            reads=self._reader.reads,
            read=self._reader.tokens,
            cached=isinstance(self._context, StatefulContext),
            seconds=time.perf_counter() - self._started,
        )
        tokens = read_only(padded[: len(prompt) + len(answer)])
        text = self._keeper.text_of(tokens)
        options, seed = self._sampler.options, self._seed
        self._made = Generation(new_id(), tokens, len(prompt), text, options, seed, report, padded=padded)
        if self._record:
            assert isinstance(self._context, StatefulContext)
            self._keeper.keep(self._made, self._context.keys_values())
