"""Several texts made or edited at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from retouch.text._batch import Batch, Seat
from retouch.text._candidate import Candidate, EditTask
from retouch.text._generation import Generation
from retouch.text._model import KeysValues, TextModel, Tokens
from retouch.text._sampler import BlockDiffusionSampler
from retouch.text._stream import TextStream
from retouch.text._wording import Wording

Recorded = tuple[Generation, KeysValues | None]
"""A text with its keys and values, if they are to be kept."""


class Together:
    """Makes texts in a batch. Nothing is kept before all are finished."""

    def __init__(self, model: TextModel, wording: Wording, *, record: bool) -> None:
        self._model = model
        self._wording = wording
        self._record = record

    def edits(self, base: Generation, kept: KeysValues, candidates: Sequence[Candidate]) -> list[Recorded]:
        """Edits of one text."""
        tasks = [EditTask(self._model.spec, self._wording, base, candidate) for candidate in candidates]
        return self._work([task.rows for task in tasks], [kept] * len(tasks), [task.run for task in tasks])

    def generations(
        self, sampler: BlockDiffusionSampler, prompts: Sequence[Tokens], length: int, seeds: Sequence[int]
    ) -> list[Recorded]:
        """Prompts with an answer each."""
        tasks = [
            partial(self._generation, sampler, prompt, length, seed)
            for prompt, seed in zip(prompts, seeds, strict=True)
        ]
        rows = [sampler.rows(len(prompt), length) for prompt in prompts]
        return self._work(rows, [None] * len(rows), tasks)

    def _generation(
        self, sampler: BlockDiffusionSampler, prompt: Tokens, length: int, seed: int, seat: Seat
    ) -> Generation:
        stream = TextStream(self, sampler, seat, prompt, length, seed, record=self._record, callback=None)
        for _ in stream:
            pass
        return stream.generation

    def _work(
        self, rows: Sequence[int], kept: Sequence[KeysValues | None], tasks: Sequence[Callable[[Seat], Generation]]
    ) -> list[Recorded]:
        def run(task: Callable[[Seat], Generation], seat: Seat) -> Recorded:
            return task(seat), seat.keys_values() if self._record else None

        if not tasks:
            return []
        return Batch(self._model.decode, self._model.spec, rows, kept).work([partial(run, task) for task in tasks])

    def text_of(self, tokens: Tokens) -> str:
        """See :class:`retouch.text._stream.Keeper`."""
        return self._wording.text(tokens)

    def keep(self, made: Generation, states: KeysValues) -> None:
        """Nothing: texts of a batch are kept together."""
