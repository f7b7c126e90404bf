"""Attention over keys and values that lie in place, or that are computed of all tokens at once."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import onnx_ir as ir

from retouch.export.decoder._draft import Draft
from retouch.export.decoder._heads import Rotation, heads_of, mixed, mixed_by_row, rotated, rotation

__all__ = ["Attention"]


class Attention:
    """Adds the attention of every layer; what layers have in common is added once.

    Attributes:
        updated: the outputs with updated keys and values, of the layers so far.
    """

    def __init__(self, draft: Draft, *, cached: bool, masked: bool = True) -> None:
        """Adds nothing yet.

        Args:
            draft: the graph.
            cached: whether keys and values lie in place.
            masked: whether blocks limit what tokens see.
        """
        self.updated: list[ir.Value] = []
        self._draft = draft
        self._cached = cached
        self._masked = masked
        if cached:
            self._write_index = draft.input("write_index", ("batch", "tokens"), ir.DataType.INT64)
            self._valid = draft.input("valid", ("batch",), ir.DataType.INT64)

    def layer(self, layer: int, x: ir.Value) -> ir.Value:
        """What a layer's attention adds to the tokens [B, Q, hidden]."""
        draft = self._draft
        query, key, value = heads_of(draft, x, layer)
        query, key = rotated(draft, query, key, self._rotation)
        keys, values = self._kept(f"keys.{layer}", key), self._kept(f"values.{layer}", value)
        if self._masked:
            result = mixed(draft, query, keys, values, self._unseen)
        else:
            result = mixed_by_row(draft, query, keys, values)
        return draft.product(result, f"{layer}.output")

    def _kept(self, name: str, rows: ir.Value) -> ir.Value:
        """All rows of a cache after the new ones were written; without a cache, the new ones."""
        draft = self._draft
        if not self._cached:
            return rows
        written = draft.op("ScatterND", draft.input(name, self._cache_shape), self._places, rows)
        draft.name(written, f"{name}.next", ir.DataType.FLOAT, self._cache_shape)
        self.updated.append(written)
        return written

    @cached_property
    def _rotation(self) -> Rotation:
        return rotation(self._draft, self._draft.positions)

    @cached_property
    def _unseen(self) -> ir.Value:
        """0 where a token sees a row and minus infinity where not, [B, 1, heads / kv_heads * Q, rows]."""
        draft, spec = self._draft, self._draft.spec
        own = draft.op("Unsqueeze", draft.op("Div", draft.positions, draft.block), draft.ints([2]))
        rows = self._counted(self._rows) if self._cached else draft.op("Unsqueeze", draft.positions, draft.ints([1]))
        sees = draft.op("GreaterOrEqual", own, draft.op("Div", rows, draft.block))
        if self._cached:
            valid = draft.op("Unsqueeze", self._valid, draft.ints([1, 2]))
            sees = draft.op("And", sees, draft.op("Less", rows, valid))
        zero, never = (draft.constant(np.array(value, np.float32)) for value in (0, -np.inf))
        unseen = draft.op("Unsqueeze", draft.op("Where", sees, zero, never), draft.ints([1]))
        return draft.op("Tile", unseen, draft.ints((1, 1, spec.heads // spec.kv_heads, 1)))

    @property
    def _cache_shape(self) -> tuple[int | str, ...]:
        spec = self._draft.spec
        return ("batch", spec.kv_heads, "rows", spec.head_dim)

    @cached_property
    def _rows(self) -> ir.Value:
        """How many rows a cache has, [1]."""
        draft = self._draft
        cache = draft.op("Shape", draft.input("keys.0", self._cache_shape))
        return draft.op("Slice", cache, draft.ints([2]), draft.ints([3]))

    @cached_property
    def _places(self) -> ir.Value:
        """Where the tokens' rows go in a cache: text, head and row, [B, kv_heads, Q, 3]."""
        draft, spec = self._draft, self._draft.spec
        batch, tokens = draft.split(draft.op("Shape", draft.ids), 0, (1, 1))
        shape = draft.op("Concat", batch, draft.ints([spec.kv_heads]), tokens, draft.ints([1]), axis=0)
        parts = (
            draft.op("Reshape", self._counted(batch), draft.ints((-1, 1, 1, 1))),
            draft.constant(np.arange(spec.kv_heads).reshape(1, -1, 1, 1)),
            draft.op("Unsqueeze", self._write_index, draft.ints([1, 3])),
        )
        return draft.op("Concat", *(draft.op("Expand", part, shape) for part in parts), axis=-1)

    def _counted(self, end: ir.Value) -> ir.Value:
        """0, 1, ... up to an end [1]."""
        draft = self._draft
        start, step = (draft.constant(np.array(value, np.int64)) for value in (0, 1))
        return draft.op("Range", start, draft.op("Squeeze", end), step)
