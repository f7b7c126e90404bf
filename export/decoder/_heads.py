"""What all attention has in common: heads of queries, keys and values, their rotation, and the mix of values."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray

from retouch.bundle import DecoderSpec
from retouch.export.decoder._draft import Draft

__all__ = ["Rotation", "heads_of", "mixed", "mixed_by_row", "rotated", "rotation", "split_heads"]

Rotation = tuple[ir.Value, ir.Value]


def heads_of(draft: Draft, x: ir.Value, layer: int) -> tuple[ir.Value, ir.Value, ir.Value]:
    """Queries (times the scores' scale), keys and values of rows [B, M, hidden], each [B, heads, M, head_dim]."""
    spec = draft.spec
    heads = split_heads(draft, draft.queries_keys_values(x, layer), spec.heads + 2 * spec.kv_heads)
    query, key, value = draft.split(heads, 1, (spec.heads, spec.kv_heads, spec.kv_heads))
    scale = spec.head_dim**-0.5
    if not spec.head_norms:
        return draft.op("Mul", query, draft.constant(np.array(scale, np.float32))), key, value
    # The scores' scale goes into a weight that is there anyway.
    return draft.normed(query, f"{layer}.query_norm", scale=scale), draft.normed(key, f"{layer}.key_norm"), value


def split_heads(draft: Draft, packed: ir.Value, heads: int) -> ir.Value:
    """Rows [B, M, heads * head_dim] as [B, heads, M, head_dim]; there may be none."""
    by_head = draft.op("Reshape", packed, draft.ints((0, -1, heads, draft.spec.head_dim)))
    return draft.op("Transpose", by_head, perm=(0, 2, 1, 3))


def mixed(draft: Draft, query: ir.Value, keys: ir.Value, values: ir.Value, unseen: ir.Value | None) -> ir.Value:
    """Values weighted by the softmax of scores. Queries that share a head of keys are rows of one product."""
    spec = draft.spec
    grouped = draft.op("Reshape", query, draft.ints((0, spec.kv_heads, -1, spec.head_dim)))
    scores = draft.op("MatMul", grouped, draft.op("Transpose", keys, perm=(0, 1, 3, 2)))
    shares = draft.op("Softmax", scores if unseen is None else draft.op("Add", scores, unseen), axis=-1)
    return _by_token(draft, draft.op("MatMul", shares, values))


def mixed_by_row(draft: Draft, query: ir.Value, keys: ir.Value, values: ir.Value) -> ir.Value:
    """The same with a product per head, in which every row stays a row: edits of rows are derived from it."""
    keys, values = _repeated(draft, keys), _repeated(draft, values)
    scores = draft.op("MatMul", query, draft.op("Transpose", keys, perm=(0, 1, 3, 2)))
    return _by_token(draft, draft.op("MatMul", draft.op("Softmax", scores, axis=-1), values))


def _repeated(draft: Draft, x: ir.Value) -> ir.Value:
    """Heads of keys or values, once for each of the queries' heads."""
    spec = draft.spec
    each = np.repeat(np.arange(spec.kv_heads), spec.heads // spec.kv_heads)
    return x if spec.heads == spec.kv_heads else draft.op("Gather", x, draft.constant(each), axis=1)


def _by_token(draft: Draft, result: ir.Value) -> ir.Value:
    spec = draft.spec
    by_head = draft.op("Reshape", result, draft.ints((0, spec.heads, -1, spec.head_dim)))
    by_token = draft.op("Transpose", by_head, perm=(0, 2, 1, 3))
    return draft.op("Reshape", by_token, draft.ints((0, -1, spec.heads * spec.head_dim)))


def rotation(draft: Draft, positions: ir.Value) -> Rotation:
    """Cosines and signed sines of rows, [B, 1, M, head_dim]; dims that are not rotated have 1 and 0."""
    gathered = (draft.op("Gather", draft.constant(table), positions) for table in _tables(draft.spec))
    first, second = (draft.op("Unsqueeze", rows, draft.ints([1])) for rows in gathered)
    return first, second


@lru_cache(maxsize=1)
def _tables(spec: DecoderSpec) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    half = spec.rotary_dims // 2
    rest = np.zeros((spec.positions, spec.head_dim - 2 * half))
    angle = np.arange(spec.positions)[:, None] * spec.rope_theta ** (-np.arange(half) / half)
    cos, sin = np.cos(angle), np.sin(angle)
    tables = np.concatenate((cos, cos, rest + 1), 1), np.concatenate((-sin, sin, rest), 1)
    return tables[0].astype(np.float32), tables[1].astype(np.float32)


def rotated(draft: Draft, query: ir.Value, key: ir.Value, turn: Rotation) -> tuple[ir.Value, ir.Value]:
    """Queries and keys with their first dims turned by their positions' angles."""
    spec = draft.spec
    both = draft.op("Concat", query, key, axis=1)
    half = spec.rotary_dims // 2
    parts = draft.split(both, -1, (half, half, spec.head_dim - 2 * half))
    swapped = draft.op("Concat", parts[1], parts[0], *parts[2:], axis=-1)
    turned = draft.op("Add", draft.op("Mul", both, turn[0]), draft.op("Mul", swapped, turn[1]))
    first, second = draft.split(turned, 1, (spec.heads, spec.kv_heads))
    return first, second
