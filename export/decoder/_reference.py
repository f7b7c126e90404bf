"""The model in numpy, written apart from the graphs: what exports are checked against."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from retouch.bundle import DecoderSpec
from retouch.export.decoder._weights import DecoderWeights

__all__ = ["reference_logits", "reference_rows"]

Array = NDArray[np.float64]
Ids = NDArray[np.int64]


def reference_logits(spec: DecoderSpec, weights: DecoderWeights, ids: Ids, block: int) -> Array:
    """The logits [N, vocabulary] of all tokens [N], in double precision.

    Args:
        spec: the model's shape.
        weights: its weights.
        ids: the tokens from position 0 on.
        block: a token sees those of its own block of so many tokens and of earlier ones.
    """
    group = np.arange(len(ids)) // block
    sees = group[:, None] >= group[None]
    positions = np.arange(len(ids))
    x = weights("embedding")[ids].astype(np.float64)
    for layer in range(spec.layers):
        normed = _normed(x, weights(f"{layer}.attention_norm"), spec)
        query, key, value = _heads(spec, weights, layer, normed, positions)
        x = x + _attended(spec, weights, layer, query, key, value, sees)
        x = x + _feed_forward(spec, weights, layer, _normed(x, weights(f"{layer}.feed_forward_norm"), spec))
    return np.asarray(_normed(x, weights("norm"), spec) @ weights("head").T)


def reference_rows(
    spec: DecoderSpec,
    weights: DecoderWeights,
    ids: Ids,
    states: Mapping[str, NDArray[np.float32]],
    rows: Sequence[Ids],
    context: Ids,
    keep: float,
) -> Array:
    """The logits [N, vocabulary] of all tokens, in double precision, where only some rows are computed.

    Args:
        spec: the model's shape.
        weights: its weights.
        ids: the tokens [N].
        states: what was computed before, by the names of the graph's inputs; they stay as they are.
        rows: the rows to compute, per layer.
        context: the rows that they see.
        keep: share of earlier values that is kept.
    """
    sees = np.ones((1, len(context)), bool)
    x = weights("embedding")[ids].astype(np.float64)
    for layer, chosen in enumerate(rows):
        keys = states[f"keys.{layer}"][0].transpose(1, 0, 2).astype(np.float64)
        values = states[f"values.{layer}"][0].transpose(1, 0, 2).astype(np.float64)
        added = states[f"added.{layer}"].astype(np.float64)
        normed = _normed(x[chosen], weights(f"{layer}.attention_norm"), spec)
        query, keys[chosen], value = _heads(spec, weights, layer, normed, chosen)
        values[chosen] = (1 - keep) * value + keep * values[chosen]
        attended = _attended(spec, weights, layer, query, keys[context], values[context], sees)
        inner = _normed(x[chosen] + attended, weights(f"{layer}.feed_forward_norm"), spec)
        added[chosen] = attended + _feed_forward(spec, weights, layer, inner)
        x = x + added
    return np.asarray(_normed(x, weights("norm"), spec) @ weights("head").T)


def _normed(x: Array, weight: NDArray[np.float32], spec: DecoderSpec) -> Array:
    return np.asarray(x / np.sqrt(np.mean(x * x, -1, keepdims=True) + spec.norm_epsilon) * weight)


def _heads(
    spec: DecoderSpec, weights: DecoderWeights, layer: int, x: Array, positions: Ids
) -> tuple[Array, Array, Array]:
    """Queries, keys and values of rows, [M, heads, head_dim] each."""
    packed = x @ weights(f"{layer}.qkv").T
    if spec.biases:
        packed = packed + weights(f"{layer}.qkv_bias")
    heads = packed.reshape(len(x), -1, spec.head_dim)
    query, key, value = np.split(heads, (spec.heads, spec.heads + spec.kv_heads), 1)
    if spec.head_norms:
        query = _normed(query, weights(f"{layer}.query_norm"), spec)
        key = _normed(key, weights(f"{layer}.key_norm"), spec)
    return _rotated(spec, query, positions), _rotated(spec, key, positions), value


def _attended(
    spec: DecoderSpec,
    weights: DecoderWeights,
    layer: int,
    query: Array,
    key: Array,
    value: Array,
    sees: NDArray[np.bool_],
) -> Array:
    mixed = []
    for head in range(spec.heads):
        shared = head * spec.kv_heads // spec.heads
        scores = query[:, head] @ key[:, shared].T / np.sqrt(spec.head_dim)
        scores = np.exp(np.where(sees, scores - scores.max(-1, keepdims=True), -np.inf))
        mixed.append(scores / scores.sum(-1, keepdims=True) @ value[:, shared])
    return np.asarray(np.concatenate(mixed, -1) @ weights(f"{layer}.output").T)


def _rotated(spec: DecoderSpec, x: Array, positions: Ids) -> Array:
    """Pairs of dims (d, d + rotary_dims / 2) of every head as complex numbers, turned by their angle."""
    half = spec.rotary_dims // 2
    angle = positions[:, None] * spec.rope_theta ** (-np.arange(half) / half)
    turned = (x[..., :half] + 1j * x[..., half : 2 * half]) * np.exp(1j * angle)[:, None]
    return np.concatenate((turned.real, turned.imag, x[..., 2 * half :]), -1)


def _feed_forward(spec: DecoderSpec, weights: DecoderWeights, layer: int, x: Array) -> Array:
    if spec.experts is None or not spec.has_experts(layer):
        return _gated(weights, x, f"{layer}.gate", f"{layer}.up", f"{layer}.down")
    result = _mixture(spec, weights, layer, x)
    if spec.experts.shared_width:
        names = (f"{layer}.shared_{part}" for part in ("gate", "up", "down"))
        result += _gated(weights, x, *names)
    return result


def _gated(weights: DecoderWeights, x: Array, gate: str, up: str, down: str) -> Array:
    opened = x @ weights(gate).T
    return np.asarray((opened / (1 + np.exp(-opened)) * (x @ weights(up).T)) @ weights(down).T)


def _mixture(spec: DecoderSpec, weights: DecoderWeights, layer: int, x: Array) -> Array:
    """Every row's experts, one row after the other, as the router of LLaDA2.x chooses them."""
    experts = spec.experts
    assert experts is not None
    scores = 1 / (1 + np.exp(-(x @ weights(f"{layer}.router").T)))
    biased = (scores + weights(f"{layer}.router_bias")).reshape(len(x), experts.groups, -1)
    chosen = []
    for row in biased:
        groups = np.argsort(-np.sort(row, -1)[:, -2:].sum(-1), kind="stable")[: experts.groups_used]
        open_to = np.where(np.isin(np.arange(experts.groups), groups)[:, None], row, -np.inf).reshape(-1)
        chosen.append(np.argsort(-open_to, kind="stable")[: experts.used])
    result = np.zeros_like(x)
    for expert in np.unique(chosen):
        names = (f"{layer}.expert_{part}.{expert}" for part in ("gate", "up", "down"))
        own = [row for row, experts_of in enumerate(chosen) if expert in experts_of]
        shares = [scores[row, expert] / (scores[row, chosen[row]].sum() if experts.used > 1 else 1) for row in own]
        result[own] += experts.scale * np.array(shares)[:, None] * _gated(weights, x[own], *names)
    return result
