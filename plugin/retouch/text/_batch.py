"""Several texts read at once: each goes its own way, and reads that are asked for together are made together."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from retouch.bundle import DecoderSpec
from retouch.engines.ort import InPlaceProgram
from retouch.text._model import KeysValues, Logits, Tokens, check_rows, grown

Made = TypeVar("Made")


@dataclass(frozen=True, eq=False)
class _Asked:
    """A read that a text waits for."""

    ids: Tokens
    start: int

    @property
    def end(self) -> int:
        """The row behind the last one."""
        return self.start + len(self.ids)


class Batch:
    """Keys and values of several texts in one array each, read by one run for all texts that ask.

    Every text is worked on in a thread of its own; a run is made once all texts that are not finished wait for one.
    Shorter reads are padded: what is behind their tokens goes to a row that no text sees.

    Attributes:
        runs: number of runs.
        rows: number of tokens that they were of, padding included.
    """

    def __init__(
        self, program: InPlaceProgram, spec: DecoderSpec, limits: Sequence[int], kept: Sequence[KeysValues | None]
    ) -> None:
        """Reads nothing yet.

        Args:
            program: the graph.
            spec: the model's shape.
            limits: the most tokens of every text.
            kept: keys and values that a text starts from.
        """
        self.runs = self.rows = 0
        self._program = program
        self._spec = spec
        self._seats = [Seat(self, limit, start) for limit, start in zip(limits, kept, strict=True)]
        self._present = list(self._seats)  # those that are not finished
        self._asked: dict[Seat, _Asked] = {}
        self._answers: dict[Seat, Logits | BaseException] = {}
        self._turn = threading.Condition()
        self._held: list[Seat] = []  # those whose keys and values lie in the arrays, in their order
        self._depth = 0  # rows of the arrays but for the last one, which padding goes to
        self._arrays: KeysValues = {}

    def work(self, tasks: Sequence[Callable[[Seat], Made]]) -> list[Made]:
        """What the tasks make, each with the context of its text. If one fails, so does the whole, once all have ended.

        What a task raises is raised; of several, the first one's.
        """
        with ThreadPoolExecutor(len(tasks)) as pool:
            futures = [pool.submit(self._one, seat, task) for seat, task in zip(self._seats, tasks, strict=True)]
        return [future.result() for future in futures]

    def read(self, seat: Seat, ids: Tokens, start: int) -> Logits:
        """The logits of a text's tokens, once all texts have asked."""
        with self._turn:
            self._asked[seat] = _Asked(ids, start)
            self._run_if_all_wait()
            self._turn.wait_for(lambda: seat in self._answers)
            answer = self._answers.pop(seat)
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def keys_values(self, seat: Seat, rows: int) -> KeysValues:
        """A text's keys and values, by the names of the graph's inputs."""
        with self._turn:
            return {name: self._rows_of(seat, name, rows)[None] for name in self._program.states}

    def _one(self, seat: Seat, task: Callable[[Seat], Made]) -> Made:
        try:
            return task(seat)
        finally:
            with self._turn:
                self._present.remove(seat)
                self._run_if_all_wait()

    def _run_if_all_wait(self) -> None:
        if not self._asked or len(self._asked) < len(self._present):
            return
        asked, self._asked = self._asked, {}
        try:
            self._answers.update(self._run(asked))
        except BaseException as error:  # noqa: BLE001 (every thread that waits has to hear of it)
            self._answers.update(dict.fromkeys(asked, error))
        self._turn.notify_all()

    def _run(self, asked: dict[Seat, _Asked]) -> dict[Seat, Logits]:
        width, end = (max(sizes) for sizes in zip(*((len(one.ids), one.end) for one in asked.values()), strict=True))
        if self._held != self._present or end > self._depth:
            self._hold(end)
        shape = len(self._held), width
        ids, positions = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
        places, valid = np.full(shape, self._depth), np.ones(len(self._held), np.int64)
        for index, seat in enumerate(self._held):
            one = asked[seat]
            ids[index, : len(one.ids)] = one.ids
            positions[index, : len(one.ids)] = places[index, : len(one.ids)] = np.arange(one.start, one.end)
            valid[index] = one.end
        feeds = {
            "ids": ids,
            "positions": positions,
            "write_index": places,
            "valid": valid,
            "block": np.array([self._spec.block]),
        }
        logits: NDArray[np.float32] = self._binding.run(feeds)["logits"]
        self.runs += 1
        self.rows += ids.size
        return {seat: logits[index, : len(asked[seat].ids)] for index, seat in enumerate(self._held)}

    def _hold(self, end: int) -> None:
        """Has the arrays hold the texts that are not finished, and at least so many rows."""
        depth = grown(self._depth, end, self._spec.block) if end > self._depth else self._depth
        arrays = {}
        for name in self._program.states:
            array = np.zeros(self._spec.cache_shape(depth + 1, len(self._present)), np.float32)
            for index, seat in enumerate(self._present):
                array[index, :, :depth] = self._rows_of(seat, name, depth)
            arrays[name] = array
        self._arrays, self._held, self._depth = arrays, list(self._present), depth
        self._binding = self._program.bind(arrays)

    def _rows_of(self, seat: Seat, name: str, rows: int) -> NDArray[np.float32]:
        """A text's first rows: those that were read, behind them those that it started from, behind them zeros."""
        array = np.zeros(self._spec.cache_shape(rows)[1:], np.float32)
        if seat.start is not None:
            start = seat.start[name][0, :, :rows]
            array[:, : start.shape[1]] = start
        if seat in self._held:
            known = min(self._depth, rows)
            array[:, :known] = self._arrays[name][self._held.index(seat), :, :known]
        return array


class Seat:
    """A text's context in a batch.

    Attributes:
        start: keys and values that it starts from.
    """

    def __init__(self, batch: Batch, limit: int, start: KeysValues | None) -> None:
        self.start = start
        self._batch = batch
        self._limit = limit

    def read(self, ids: Tokens, start: int) -> Logits:
        """See :class:`retouch.text.Context`."""
        check_rows(start + len(ids), self._limit)
        return self._batch.read(self, ids, start)

    def keys_values(self) -> KeysValues:
        """The keys and values of all rows, by the names of the graph's inputs."""
        return self._batch.keys_values(self, self._limit)
