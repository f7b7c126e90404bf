"""Graphs that compute chosen rows of every layer, over what others left behind. All tokens see each other."""

from __future__ import annotations

import enum

import numpy as np
import onnx_ir as ir

from retouch.bundle import DecoderSpec
from retouch.export.decoder._draft import Draft
from retouch.export.decoder._feed_forward import feed_forward
from retouch.export.decoder._graph import finished
from retouch.export.decoder._heads import heads_of, mixed, rotated, rotation, split_heads
from retouch.export.decoder._stored import StoredWeights

__all__ = ["RowsKind", "rows_graph"]


class RowsKind(enum.Enum):
    """Which rows such a graph computes, and what they see."""

    CHOSEN = "rows"
    """Those that it is told."""
    SIMILAR = "similar"
    """Also those of some candidates whose values changed most (dLLM-Cache, https://arxiv.org/abs/2506.06295). They see
    some rows only."""
    FOCUS = "focus"
    """Those that it is told, which see some rows only; values may be mixed with those that were there."""


def rows_graph(spec: DecoderSpec, weights: StoredWeights, kind: RowsKind) -> ir.Model:
    """The model as a graph of chosen rows; :class:`retouch.bundle.TextBundle` has its inputs and outputs."""
    return _RowsGraph(Draft(spec, weights), kind).model()


class _RowsGraph:
    def __init__(self, draft: Draft, kind: RowsKind) -> None:
        self._draft = draft
        self._kind = kind
        self._states: list[ir.Value] = []
        self._picked: list[ir.Value] = []

    def model(self) -> ir.Model:
        draft = self._draft
        x = draft.op("Gather", draft.weight("embedding"), draft.ids)
        for layer in range(draft.spec.layers):
            x = draft.op("Add", x, self._layer(layer, x))
        wanted = draft.op("Gather", x, draft.input("wanted", ("wanted",), ir.DataType.INT64), axis=1)
        logits = draft.product(draft.normed(wanted, "norm"), "head")
        draft.name(logits, "logits", ir.DataType.FLOAT, (1, "wanted", draft.spec.vocabulary))
        return finished(draft, [logits, *self._picked, *self._states], self._kind.value)

    def _layer(self, layer: int, x: ir.Value) -> ir.Value:
        """What the layer adds to all rows [1, N, hidden]: to the chosen ones anew, to the others as it is kept."""
        draft = self._draft
        rows = draft.input(f"rows.{layer}", (f"rows.{layer}",), ir.DataType.INT64)
        candidates = self._candidate_values(layer, x) if self._kind is RowsKind.SIMILAR else None
        if candidates is not None:
            rows = draft.op("Concat", rows, self._most_changed(layer, candidates), axis=0)
        chosen = draft.op("Gather", x, rows, axis=1)
        query, key, value = heads_of(draft, draft.normed(chosen, f"{layer}.attention_norm"), layer)
        query, key = rotated(draft, query, key, rotation(draft, draft.op("Unsqueeze", rows, draft.ints([0]))))
        attended = mixed(draft, query, self._keys(layer, rows, key), self._values(layer, rows, value, candidates), None)
        attended = draft.product(attended, f"{layer}.output")
        normed = draft.normed(draft.op("Add", chosen, attended), f"{layer}.feed_forward_norm")
        added = draft.op("Add", attended, feed_forward(draft, layer, normed))
        return draft.op("Unsqueeze", self._added(layer, rows, added), draft.ints([0]))

    def _keys(self, layer: int, rows: ir.Value, key: ir.Value) -> ir.Value:
        return self._seen(self._written(f"keys.{layer}", rows, key))

    def _values(self, layer: int, rows: ir.Value, value: ir.Value, candidates: ir.Value | None) -> ir.Value:
        draft, name = self._draft, f"values.{layer}"
        if self._kind is RowsKind.FOCUS:
            keep = draft.input("keep", (1,))
            before = draft.op("Gather", self._cache(name), rows, axis=2)
            value = draft.op("Add", value, draft.op("Mul", keep, draft.op("Sub", before, value)))
        if candidates is not None:
            # One write, so that it stays in place.
            rows = draft.op("Concat", self._candidates, rows, axis=0)
            value = draft.op("Concat", candidates, value, axis=2)
        return self._seen(self._written(name, rows, value))

    def _added(self, layer: int, rows: ir.Value, added: ir.Value) -> ir.Value:
        draft, spec = self._draft, self._draft.spec
        name, shape = f"added.{layer}", ("tokens", spec.hidden)
        places = draft.op("Unsqueeze", rows, draft.ints([1]))
        plain = draft.op("Squeeze", added, draft.ints([0]))
        return self._state(name, shape, draft.op("ScatterND", draft.input(name, shape), places, plain))

    def _candidate_values(self, layer: int, x: ir.Value) -> ir.Value:
        """Values of the candidates [1, kv_heads, C, head_dim]."""
        draft = self._draft
        normed = draft.normed(draft.op("Gather", x, self._candidates, axis=1), f"{layer}.attention_norm")
        return split_heads(draft, draft.queries_keys_values(normed, layer, values_only=True), draft.spec.kv_heads)

    def _most_changed(self, layer: int, values: ir.Value) -> ir.Value:
        """The candidates whose values have the smallest cosines with those that are kept."""
        draft = self._draft
        kept = draft.op("Gather", self._cache(f"values.{layer}"), self._candidates, axis=2)

        def summed(one: ir.Value, other: ir.Value) -> ir.Value:
            return draft.op("ReduceSum", draft.op("Mul", one, other), draft.ints((0, 1, 3)), keepdims=0)

        lengths = draft.op("Sqrt", draft.op("Mul", summed(values, values), summed(kept, kept)))
        least = draft.constant(np.array(1e-12, np.float32))
        cosine = draft.op("Div", summed(values, kept), draft.op("Max", lengths, least))
        places = draft.smallest(cosine, draft.input("count", (1,), ir.DataType.INT64))
        picked = draft.op("Gather", self._candidates, places, axis=0)
        draft.name(picked, f"picked.{layer}", ir.DataType.INT64, (f"picked.{layer}",))
        self._picked.append(picked)
        return picked

    @property
    def _candidates(self) -> ir.Value:
        return self._draft.input("candidates", ("candidates",), ir.DataType.INT64)

    def _seen(self, cache: ir.Value) -> ir.Value:
        """The rows of a cache that others see."""
        if self._kind is RowsKind.CHOSEN:
            return cache
        return self._draft.op("Gather", cache, self._draft.input("context", ("context",), ir.DataType.INT64), axis=2)

    def _cache(self, name: str) -> ir.Value:
        return self._draft.input(name, self._cache_shape)

    @property
    def _cache_shape(self) -> tuple[int | str, ...]:
        spec = self._draft.spec
        return (1, spec.kv_heads, "tokens", spec.head_dim)

    def _written(self, name: str, rows: ir.Value, new: ir.Value) -> ir.Value:
        written = self._draft.op("ScatterND", self._cache(name), self._places(rows), new)
        return self._state(name, self._cache_shape, written)

    def _places(self, rows: ir.Value) -> ir.Value:
        """Where rows are in a cache: head and row, [1, kv_heads, M, 3]."""
        draft, heads = self._draft, self._draft.spec.kv_heads
        shape = draft.op("Concat", draft.ints((1, heads)), draft.op("Shape", rows), draft.ints([1]), axis=0)
        parts = (
            draft.constant(np.zeros((1, 1, 1, 1), np.int64)),
            draft.constant(np.arange(heads).reshape(1, -1, 1, 1)),
            draft.op("Reshape", rows, draft.ints((1, 1, -1, 1))),
        )
        return draft.op("Concat", *(draft.op("Expand", part, shape) for part in parts), axis=-1)

    def _state(self, name: str, shape: tuple[int | str, ...], value: ir.Value) -> ir.Value:
        self._draft.name(value, f"{name}.next", ir.DataType.FLOAT, shape)
        self._states.append(value)
        return value
