"""A text bundle, loaded: what reads tokens and gives logits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from retouch.bundle import DecoderSpec, TextBundle
from retouch.engines import Engine, Program
from retouch.engines.ort import InPlaceProgram, OrtEngine, Provider, WeightStorage
from retouch.errors import FeedError
from retouch.tokens import CharacterTokenizer, Tokenizer

Logits = NDArray[np.float32]
Tokens = NDArray[np.int64]
KeysValues = Mapping[str, NDArray[np.float32]]

RowsKind = Literal["rows", "similar", "focus"]


class Context(Protocol):
    """The tokens of one text that were read so far."""

    def read(self, ids: Tokens, start: int) -> Logits:
        """The logits [Q, vocabulary] of tokens [Q] at the positions from ``start`` on, the start of a block.

        They see each other and what was read before ``start``, as far as the model's blocks let them. What was read
        from ``start`` on before is replaced.
        """


class TextModel:
    """A text bundle in ONNX Runtime.

    Attributes:
        bundle: the bundle.
        spec: the model's shape.
    """

    def __init__(
        self,
        bundle: TextBundle | str | Path,
        providers: Sequence[Provider] | None = None,
        threads: int | None = None,
        weights: WeightStorage | str = WeightStorage.FLOAT32,
    ) -> None:
        """Opens the bundle; graphs load when they are first used.

        Args:
            bundle: the bundle, or its directory.
            providers: execution providers that keep tensors in host memory; ``None`` means the CPU, with Retouch's own
                kernels where they are there.
            threads: threads per run; ``None`` leaves the choice to the engine.
            weights: how these kernels keep weights: ``float16`` and ``bfloat16`` make reads of few tokens faster, and
                tokens may differ where the model is not sure.
        """
        self.bundle = bundle if isinstance(bundle, TextBundle) else TextBundle.open(bundle)
        self.spec: DecoderSpec = self.bundle.manifest.model
        self._rows_programs: dict[RowsKind, InPlaceProgram] = {}
        self.engine = OrtEngine(providers, threads, weights)

    @cached_property
    def own_tokenizer(self) -> Tokenizer | None:
        """The tokenizer that came with the model, if Retouch has its kind."""
        spec = self.bundle.manifest.tokenizer
        return None if spec is None else CharacterTokenizer(spec.symbols)

    def context(self, rows: int, kept: KeysValues | None = None) -> CachedContext:
        """A context whose keys and values lie in memory for so many tokens.

        Args:
            rows: the most tokens that it will hold.
            kept: keys and values to start from; they are copied as far as they are needed.
        """
        return CachedContext(self.decode, self.spec, rows, kept)

    def uncached(self, rows: int, *, window: bool = False) -> UncachedContext:
        """A context that computes everything anew in every read.

        Args:
            rows: the most tokens that it will hold.
            window: whether all tokens so far see each other, whatever their blocks.
        """
        return UncachedContext(self.engine, self._full, rows, rows if window else self.spec.block)

    @cached_property
    def decode(self) -> InPlaceProgram:
        """The graph with keys and values in place."""
        return self.engine.open_in_place(self.bundle.decode_graph)

    def rows_program(self, kind: RowsKind) -> InPlaceProgram:
        """A graph that computes chosen rows; it loads when it is first asked for."""
        if kind not in self._rows_programs:
            self._rows_programs[kind] = self.engine.open_in_place(self.bundle.rows_graph(kind))
        return self._rows_programs[kind]

    @cached_property
    def _full(self) -> Program:
        return self.engine.open(self.bundle.full_graph)


@runtime_checkable
class StatefulContext(Context, Protocol):
    """A context that keeps keys and values."""

    def keys_values(self) -> KeysValues:
        """The arrays with all rows, by the names of the graph's inputs; further reads may change them."""


@runtime_checkable
class WideningContext(Context, Protocol):
    """A context that can let several blocks see each other."""

    def read_widened(self, ids: Tokens, start: int, block: int) -> Logits:
        """As :meth:`read`, with blocks of so many tokens. What was read before stays as it is."""


class CachedContext:
    """Keys and values of what was read lie in memory, and are exact: no token sees a later block.

    Attention goes over all rows of a cache, so the arrays are only as long as what was read, and grow with it.
    """

    def __init__(self, program: InPlaceProgram, spec: DecoderSpec, rows: int, kept: KeysValues | None) -> None:
        self._program = program
        self._spec = spec
        self._limit = rows
        self._kept = kept
        self._rows = 0
        self._arrays: KeysValues = {}
        self._hold(min(rows, spec.block))

    def read(self, ids: Tokens, start: int) -> Logits:
        """See :class:`Context`."""
        return self.read_widened(ids, start, self._spec.block)

    def read_widened(self, ids: Tokens, start: int, block: int) -> Logits:
        """See :class:`WideningContext`."""
        end = start + len(ids)
        check_rows(end, self._limit)
        if end > self._rows:
            self._hold(min(self._limit, grown(self._rows, end, self._spec.block)))
        positions = np.arange(start, end)[None]
        feeds = {
            "ids": ids[None],
            "positions": positions,
            "write_index": positions,
            "valid": np.array([end]),
            "block": np.array([block]),
        }
        logits: Logits = self._binding.run(feeds)["logits"][0]
        return logits

    def keys_values(self) -> KeysValues:
        """The arrays with all rows, by the names of the graph's inputs; further reads change them."""
        if self._rows < self._limit:
            self._hold(self._limit)
        return self._arrays

    def _hold(self, rows: int) -> None:
        self._arrays = {name: self._grow(name, rows) for name in self._program.states}
        self._rows = rows
        self._binding = self._program.bind(self._arrays)

    def _grow(self, name: str, rows: int) -> NDArray[np.float32]:
        """An array of so many rows: those so far, behind them those to start from, behind them zeros."""
        array = np.zeros(self._spec.cache_shape(rows), np.float32)
        if self._kept is not None:
            start = self._kept[name][:, :, self._rows : rows]
            array[:, :, self._rows : self._rows + start.shape[2]] = start
        if self._rows:
            array[:, :, : self._rows] = self._arrays[name]
        return array


class UncachedContext:
    """Nothing but the tokens is kept."""

    def __init__(self, engine: Engine, program: Program, rows: int, block: int) -> None:
        self._engine = engine
        self._program = program
        self._ids = np.zeros(rows, np.int64)
        self._block = np.array([block])

    def read(self, ids: Tokens, start: int) -> Logits:
        """See :class:`Context`."""
        end = start + len(ids)
        check_rows(end, len(self._ids))
        self._ids[start:end] = ids
        feeds: dict[str, NDArray[Any]] = {
            "ids": self._ids[None, :end].copy(),
            "positions": np.arange(end)[None],
            "block": self._block,
        }
        values = {name: self._engine.value(array) for name, array in feeds.items()}
        logits: Logits = self._program.run(values)["logits"].numpy()[0, start:]
        return logits


def grown(rows: int, end: int, block: int) -> int:
    """So many rows that ``end`` is within, in whole blocks: a sixteenth more in long texts, so that copies stay few."""
    return max(-(-end // block), rows * 17 // 16 // block) * block


def check_rows(end: int, rows: int) -> None:
    """Raises ``FeedError`` if a read ends behind a context's last row."""
    if end > rows:
        raise FeedError(
            f"Expected at most {rows} tokens in this context, got {end}. Make a context with more rows, or give a "
            "shorter text."
        )
