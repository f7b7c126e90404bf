"""The model in numpy, written apart from the graphs: what exports are checked against."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from retouch.bundle import DecoderSpec
from retouch.export.decoder._weights import DecoderWeights

__all__ = ["reference_logits"]

Array = NDArray[np.float64]


def reference_logits(spec: DecoderSpec, weights: DecoderWeights, ids: NDArray[np.int64], block: int) -> Array:
    """The logits [N, vocabulary] of all tokens [N], in double precision.

    Args:
        spec: the model's shape.
        weights: its weights.
        ids: the tokens from position 0 on.
        block: a token sees those of its own block of so many tokens and of earlier ones.
    """
    group = np.arange(len(ids)) // block
    sees = group[:, None] >= group[None]
    x = weights("embedding")[ids].astype(np.float64)
    for layer in range(spec.layers):
        x = x + _attention(spec, weights, layer, _normed(x, weights(f"{layer}.attention_norm"), spec), sees)
        normed = _normed(x, weights(f"{layer}.feed_forward_norm"), spec)
        gate, up = normed @ weights(f"{layer}.gate").T, normed @ weights(f"{layer}.up").T
        x = x + (gate / (1 + np.exp(-gate)) * up) @ weights(f"{layer}.down").T
    return np.asarray(_normed(x, weights("norm"), spec) @ weights("head").T)


def _normed(x: Array, weight: NDArray[np.float32], spec: DecoderSpec) -> Array:
    return np.asarray(x / np.sqrt(np.mean(x * x, -1, keepdims=True) + spec.norm_epsilon) * weight)


def _attention(spec: DecoderSpec, weights: DecoderWeights, layer: int, x: Array, sees: NDArray[np.bool_]) -> Array:
    packed = (x @ weights(f"{layer}.qkv").T).reshape(len(x), -1, spec.head_dim)
    key_start, value_start = spec.heads, spec.heads + spec.kv_heads
    query = _rotated(spec, _normed(packed[:, :key_start], weights(f"{layer}.query_norm"), spec))
    key = _rotated(spec, _normed(packed[:, key_start:value_start], weights(f"{layer}.key_norm"), spec))
    value = packed[:, value_start:]
    mixed = []
    for head in range(spec.heads):
        shared = head * spec.kv_heads // spec.heads
        scores = query[:, head] @ key[:, shared].T / np.sqrt(spec.head_dim)
        scores = np.exp(np.where(sees, scores - scores.max(-1, keepdims=True), -np.inf))
        mixed.append(scores / scores.sum(-1, keepdims=True) @ value[:, shared])
    return np.asarray(np.concatenate(mixed, -1) @ weights(f"{layer}.output").T)


def _rotated(spec: DecoderSpec, x: Array) -> Array:
    """Pairs of dims (d, d + rotary_dims / 2) of every head as complex numbers, turned by their angle."""
    half = spec.rotary_dims // 2
    angle = np.arange(len(x))[:, None] * spec.rope_theta ** (-np.arange(half) / half)
    turned = (x[..., :half] + 1j * x[..., half : 2 * half]) * np.exp(1j * angle)[:, None]
    return np.concatenate((turned.real, turned.imag, x[..., 2 * half :]), -1)
