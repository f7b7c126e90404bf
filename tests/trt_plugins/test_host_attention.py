"""Kernels of attention and of norms against numpy, on the host."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from retouch.trt_plugins._kernel_library import ACTIVATIONS
from tests.trt_plugins.drawn_operands import FEW, TYPE, activated, close, drawn
from tests.trt_plugins.host_kernels import DTYPES, HostKernels


def attended(query: np.ndarray, key: np.ndarray, value: np.ndarray, scale: float) -> np.ndarray:
    scores = scale * np.einsum("qhd,khd->hqk", query.astype(np.float64), key.astype(np.float64))
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return np.einsum("hqk,khd->qhd", weights / weights.sum(-1, keepdims=True), value.astype(np.float64))


@FEW
@given(
    seed=st.integers(0, 999), heads=st.integers(1, 2), queries=st.integers(0, 70), keys=st.integers(1, 80),
    share=st.floats(0, 1), width=st.sampled_from([1, 8, 32, 40, 64, 72]), of_values=st.sampled_from([0, 0, 5, 48]),
    dtype=TYPE,
)  # fmt: skip
def test_edit_attention(
    kernels: HostKernels, seed: int, heads: int, queries: int, keys: int, share: float, width: int, of_values: int,
    dtype: str,
) -> None:  # fmt: skip
    generator = np.random.default_rng(seed)
    query, key = (drawn(generator, (n, heads, width), dtype) for n in (queries, keys))
    value = drawn(generator, (keys, heads, of_values or width), dtype)
    rows = generator.permutation(keys)[: round(share * keys)].astype(np.int64)
    fresh = (drawn(generator, (len(rows), heads, width), dtype), drawn(generator, (len(rows), *value.shape[1:]), dtype))
    slot = kernels.slots(rows, keys)
    scale = width**-0.5
    got = kernels.edit_attention(query, key, value, fresh, slot, scale)
    for base, overlay in ((key, fresh[0]), (value, fresh[1])):
        base[rows] = overlay
    close(got, attended(query, key, value, scale), dtype)


@pytest.mark.parametrize("dtype", sorted(DTYPES))
@pytest.mark.parametrize("width", [72, 80, 128, 150, 160, 256])
def test_edit_attention_of_wide_heads(kernels: HostKernels, width: int, dtype: str) -> None:
    generator = np.random.default_rng(width)
    query, key, value = (drawn(generator, (n, 1, width), dtype) for n in (5, 70, 70))
    slot = kernels.slots(np.zeros(0, np.int64), 70)
    nothing = np.zeros((0, 1, width), DTYPES[dtype])
    got = kernels.edit_attention(query, key, value, (nothing, nothing), slot, width**-0.5)
    close(got, attended(query, key, value, width**-0.5), dtype)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("width", [8, 40])
def test_attention_of_few_queries_is_cut_along_the_keys(
    kernels: HostKernels, monkeypatch: pytest.MonkeyPatch, width: int, dtype: str
) -> None:
    generator = np.random.default_rng(width)
    query, key, value = (drawn(generator, (n, 2, width), dtype) for n in (3, 600, 600))
    # The largest scores are all in the last part.
    key[590:] *= np.array(4, DTYPES[dtype])
    rows = np.array([5, 595], np.int64)
    fresh = drawn(generator, (2, 2, width), dtype), drawn(generator, (2, 2, width), dtype)
    slot = kernels.slots(rows, 600)
    got = kernels.edit_attention(query, key, value, fresh, slot, 1.0)
    monkeypatch.setattr(kernels, "workspace", None)
    whole = kernels.edit_attention(query, key, value, fresh, slot, 1.0)
    key[rows], value[rows] = fresh
    for one in (got, whole):
        close(one, attended(query, key, value, 1.0), dtype)


@pytest.mark.parametrize("dtype", sorted(DTYPES))
def test_edit_attention_with_scores_far_apart(kernels: HostKernels, dtype: str) -> None:
    """The largest scores come last, and are so large that their exponentials overflow."""
    keys = np.linspace(-30, 30, 70).astype(DTYPES[dtype]).reshape(70, 1, 1) * np.ones((1, 1, 8), DTYPES[dtype])
    query = np.full((3, 1, 8), 2, DTYPES[dtype])
    value = np.arange(70, dtype=np.float32).astype(DTYPES[dtype]).reshape(70, 1, 1) * np.ones((1, 1, 8), DTYPES[dtype])
    slot = kernels.slots(np.zeros(0, np.int64), 70)
    nothing = np.zeros((0, 1, 8), DTYPES[dtype])
    got = kernels.edit_attention(query, keys, value, (nothing, nothing), slot, 1.0)
    close(got, attended(query, keys, value, 1.0), dtype)


@FEW
@given(
    seed=st.integers(0, 999), rows=st.integers(0, 40), groups=st.integers(1, 8), each=st.integers(1, 40),
    affine=st.booleans(), activation=st.sampled_from(sorted(ACTIVATIONS)), dtype=TYPE,
)  # fmt: skip
def test_edit_group_norm(
    kernels: HostKernels, seed: int, rows: int, groups: int, each: int, affine: bool, activation: str, dtype: str
) -> None:
    generator = np.random.default_rng(seed)
    channels = groups * each
    x = drawn(generator, (rows, channels), dtype)
    moments = np.stack([generator.standard_normal(groups), generator.uniform(0.5, 2, groups)]).astype(np.float32)
    gain, bias = (drawn(generator, (channels,), dtype) if affine else None for _ in range(2))
    got = kernels.edit_group_norm(x, moments, gain, bias, 1e-5, activation)
    mean, variance = (np.repeat(part.astype(np.float64), each) for part in moments)
    expected = (x.astype(np.float64) - mean) / np.sqrt(variance + 1e-5)
    if gain is not None and bias is not None:
        expected = expected * gain.astype(np.float64) + bias.astype(np.float64)
    close(got, activated(expected, activation), dtype)


@FEW
@given(
    seed=st.integers(0, 999), size=st.integers(1, 60), share=st.floats(0, 1), groups=st.integers(1, 8),
    each=st.integers(1, 40), dtype=TYPE,
)  # fmt: skip
def test_group_moments_follow_the_rows_that_changed(
    kernels: HostKernels, seed: int, size: int, share: float, groups: int, each: int, dtype: str
) -> None:
    generator = np.random.default_rng(seed)
    cached = drawn(generator, (size, groups * each), dtype)
    index = generator.permutation(size)[: round(share * size)].astype(np.int64)
    rows = drawn(generator, (len(index), groups * each), dtype)

    def moments(x: np.ndarray) -> np.ndarray:
        by_group = x.astype(np.float64).reshape(size, groups, each)
        return np.stack([by_group.mean((0, 2)), by_group.var((0, 2))])

    got = kernels.group_moments(rows, cached, index, moments(cached).astype(np.float32), 1 / (size * each))
    after = cached.copy()
    after[index] = rows
    assert np.abs(got - moments(after)).max() < 1e-5


def test_group_moments_pass_over_rows_outside_of_the_cached_tensor(kernels: HostKernels) -> None:
    cached = np.arange(12, dtype=np.float32).reshape(3, 4)
    moments = np.stack([cached.mean(keepdims=True)[0], cached.var(keepdims=True)[0]])
    rows = np.full((2, 4), 100, np.float32)
    got = kernels.group_moments(rows, cached, np.array([3, -1]), moments, 1 / cached.size)
    assert np.array_equal(got, moments)


def test_edit_group_norm_of_numbers_far_from_zero(kernels: HostKernels) -> None:
    """The mean is a thousand times the deviation: behind the product it would leave its rounding."""
    x = (1000 + np.random.default_rng(0).standard_normal((20, 8))).astype(np.float32)
    got = kernels.edit_group_norm(x, np.array([[1000], [1]], np.float32), None, None, 0.0)
    assert np.abs(got - (x.astype(np.float64) - 1000)).max() < 1e-6
