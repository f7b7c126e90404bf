"""Attention over keys and values that lie in place, or that are computed of all tokens at once."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import onnx_ir as ir

from retouch.export.decoder._draft import Draft

__all__ = ["Attention"]


class Attention:
    """Adds the attention of every layer; what layers have in common is added once.

    Attributes:
        updated: the outputs with updated keys and values, of the layers so far.
    """

    def __init__(self, draft: Draft, *, cached: bool) -> None:
        self.updated: list[ir.Value] = []
        self._draft = draft
        self._cached = cached
        if cached:
            self._write_index = draft.input("write_index", ("batch", "tokens"), ir.DataType.INT64)
            self._valid = draft.input("valid", ("batch",), ir.DataType.INT64)

    def layer(self, layer: int, x: ir.Value) -> ir.Value:
        """What a layer's attention adds to the tokens [B, Q, hidden]."""
        draft, spec = self._draft, self._draft.spec
        packed = draft.product(x, f"{layer}.qkv")
        by_head = draft.op("Reshape", packed, draft.ints((0, 0, -1, spec.head_dim)))
        heads = draft.op("Transpose", by_head, perm=(0, 2, 1, 3))
        query, key, value = draft.split(heads, 1, (spec.heads, spec.kv_heads, spec.kv_heads))
        # The scores' scale goes into a weight that is there anyway.
        query = draft.normed(query, f"{layer}.query_norm", scale=spec.head_dim**-0.5)
        query, key = self._rotated(query, draft.normed(key, f"{layer}.key_norm"))
        keys, values = self._kept(f"keys.{layer}", key), self._kept(f"values.{layer}", value)
        return draft.product(self._mixed(query, keys, values), f"{layer}.output")

    def _mixed(self, query: ir.Value, keys: ir.Value, values: ir.Value) -> ir.Value:
        """Values weighted by the softmax of scores. Queries that share a head of keys are rows of one product."""
        draft, spec = self._draft, self._draft.spec
        grouped = draft.op("Reshape", query, draft.ints((0, spec.kv_heads, -1, spec.head_dim)))
        scores = draft.op("MatMul", grouped, draft.op("Transpose", keys, perm=(0, 1, 3, 2)))
        shares = draft.op("Softmax", draft.op("Add", scores, self._unseen), axis=-1)
        mixed = draft.op("MatMul", shares, values)
        by_head = draft.op("Reshape", mixed, draft.ints((0, spec.heads, -1, spec.head_dim)))
        by_token = draft.op("Transpose", by_head, perm=(0, 2, 1, 3))
        return draft.op("Reshape", by_token, draft.ints((0, 0, -1)))

    def _kept(self, name: str, rows: ir.Value) -> ir.Value:
        """All rows of a cache after the new ones were written; without a cache, the new ones."""
        draft = self._draft
        if not self._cached:
            return rows
        written = draft.op("ScatterND", draft.input(name, self._cache_shape), self._places, rows)
        draft.name(written, f"{name}.next", ir.DataType.FLOAT, self._cache_shape)
        self.updated.append(written)
        return written

    def _rotated(self, query: ir.Value, key: ir.Value) -> tuple[ir.Value, ...]:
        """Queries and keys with their first dims turned by their positions' angles."""
        draft, spec = self._draft, self._draft.spec
        both = draft.op("Concat", query, key, axis=1)
        half = spec.rotary_dims // 2
        parts = draft.split(both, -1, (half, half, spec.head_dim - 2 * half))
        swapped = draft.op("Concat", parts[1], parts[0], *parts[2:], axis=-1)
        cos, sin = self._rotation
        turned = draft.op("Add", draft.op("Mul", both, cos), draft.op("Mul", swapped, sin))
        return draft.split(turned, 1, (spec.heads, spec.kv_heads))

    @cached_property
    def _rotation(self) -> tuple[ir.Value, ir.Value]:
        """Cosines and signed sines of the tokens, [B, 1, Q, head_dim]; dims that are not rotated have 1 and 0."""
        draft, spec = self._draft, self._draft.spec
        half = spec.rotary_dims // 2
        rest = np.zeros((spec.positions, spec.head_dim - 2 * half))
        angle = np.arange(spec.positions)[:, None] * spec.rope_theta ** (-np.arange(half) / half)
        cos, sin = np.cos(angle), np.sin(angle)
        tables = np.concatenate((cos, cos, rest + 1), 1), np.concatenate((-sin, sin, rest), 1)
        gathered = (draft.op("Gather", draft.constant(t.astype(np.float32)), draft.positions) for t in tables)
        first, second = (draft.op("Unsqueeze", rows, draft.ints([1])) for rows in gathered)
        return first, second

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
