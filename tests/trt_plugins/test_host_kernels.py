"""CUDA kernels, run on the host block by block, against plain numpy in double precision."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retouch.trt_plugins._kernel_library import ACTIVATIONS, KernelTail
from tests.trt_plugins.host_kernels import DTYPES, HostKernels, poisoned

TOLERANCE = {"float32": 2e-6, "float16": 2e-3, "bfloat16": 1.2e-2}
FEW = settings(max_examples=25, deadline=None)
TYPE = st.sampled_from(sorted(DTYPES))


@pytest.fixture(scope="module")
def kernels(host_library: Path) -> HostKernels:
    return HostKernels(host_library)


def drawn(generator: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    return generator.standard_normal(shape).astype(DTYPES[dtype])


def close(got: np.ndarray, expected: np.ndarray, dtype: str) -> None:
    scale = max(1.0, float(np.abs(expected).max(initial=0.0)))
    error = np.abs(got.astype(np.float64) - expected).max(initial=0.0)
    assert error <= TOLERANCE[dtype] * scale, f"{dtype}: {error} of {scale}"


def table(
    generator: np.random.Generator, active: int, cached: int, halo: int, row: tuple[int, ...], dtype: str
) -> dict[str, np.ndarray]:
    return {
        "rows": drawn(generator, (active, *row), dtype),
        "cached": drawn(generator, (cached, *row), dtype),
        "halo": generator.permutation(cached)[:halo].astype(np.int64),
        "pad": np.zeros((1, *row), DTYPES[dtype]),
    }


def looked_up(operands: dict[str, np.ndarray], neighbours: np.ndarray) -> np.ndarray:
    rows = [operands["rows"], operands["cached"][operands["halo"]], operands["pad"]]
    return np.concatenate(rows)[neighbours]


@FEW
@given(
    seed=st.integers(0, 999), active=st.integers(0, 40), halo=st.integers(0, 20), taps=st.integers(1, 9),
    targets=st.integers(0, 40), width=st.integers(1, 67), dtype=TYPE,
)  # fmt: skip
def test_gather_rows(
    kernels: HostKernels, seed: int, active: int, halo: int, taps: int, targets: int, width: int, dtype: str
) -> None:
    generator = np.random.default_rng(seed)
    operands = table(generator, active, 20, halo, (width,), dtype)
    neighbours = generator.integers(0, active + halo + 1, (targets, taps)).astype(np.int64)
    got = kernels.gather_rows(**operands, neighbours=neighbours)
    assert got.tobytes() == looked_up(operands, neighbours).tobytes()


@pytest.mark.parametrize("width", [1, 2, 4, 8, 16, 24, 128, 1000])
def test_gather_rows_in_units_of_every_size(kernels: HostKernels, width: int) -> None:
    generator = np.random.default_rng(width)
    bytes_ = {name: generator.integers(0, 256, (9, width), np.uint8) for name in ("rows", "cached")}
    operands = {**bytes_, "halo": np.array([3, 8]), "pad": np.zeros((1, width), np.uint8)}
    neighbours = generator.integers(0, 12, (300, 3)).astype(np.int64)
    assert (kernels.gather_rows(**operands, neighbours=neighbours) == looked_up(operands, neighbours)).all()


def test_rows_outside_of_the_table_are_the_pad_row(kernels: HostKernels) -> None:
    operands = table(np.random.default_rng(0), 2, 3, 1, (4,), "float32")
    operands["pad"] += 7
    got = kernels.gather_rows(**operands, neighbours=np.array([[-1, 4, 1 << 40, 3]]))
    assert (got == 7).all()


@FEW
@given(
    seed=st.integers(0, 999),
    sizes=st.lists(st.integers(1, 6), min_size=1, max_size=4),
    share=st.floats(0, 1),
    width=st.integers(1, 33),
    dtype=TYPE,
    in_place=st.booleans(),
)
def test_masked_merge(
    kernels: HostKernels, seed: int, sizes: list[int], share: float, width: int, dtype: str, in_place: bool
) -> None:
    generator = np.random.default_rng(seed)
    cached = drawn(generator, (*sizes, width), dtype)
    count = int(np.prod(sizes))
    chosen = generator.permutation(count)[: round(share * count)]
    index = np.stack(np.unravel_index(chosen, sizes), axis=1).astype(np.int64).reshape(len(chosen), len(sizes))
    rows = drawn(generator, (len(chosen), width), dtype)
    expected = cached.copy()
    expected.reshape(count, width)[chosen] = rows
    got = kernels.masked_merge(cached.copy(), index, rows, in_place=in_place)
    assert got.tobytes() == expected.tobytes()


def test_masked_merge_counts_from_the_end_and_passes_over_what_is_outside(kernels: HostKernels) -> None:
    cached = np.zeros((5, 2), np.float32)
    rows = np.arange(1, 7, dtype=np.float32).reshape(3, 2)
    got = kernels.masked_merge(cached, np.array([[-1], [7], [0]]), rows)
    assert got.tolist() == [[5, 6], [0, 0], [0, 0], [0, 0], [1, 2]]


@FEW
@given(
    seed=st.integers(0, 999), active=st.integers(0, 70), halo=st.integers(0, 20), taps=st.sampled_from([1, 4, 9]),
    targets=st.integers(0, 70), channels=st.sampled_from([1, 3, 8, 13, 16, 24]), columns=st.integers(1, 70),
    dtype=TYPE, biased=st.booleans(),
)  # fmt: skip
def test_edit_conv(
    kernels: HostKernels, seed: int, active: int, halo: int, taps: int, targets: int, channels: int, columns: int,
    dtype: str, biased: bool,
) -> None:  # fmt: skip
    generator = np.random.default_rng(seed)
    operands = table(generator, active, 20, halo, (channels,), dtype)
    neighbours = generator.integers(0, active + halo + 1, (targets, taps)).astype(np.int64)
    weight = drawn(generator, (columns, taps * channels), dtype) / np.array(np.sqrt(taps * channels), DTYPES[dtype])
    bias = drawn(generator, (columns,), dtype) if biased else None
    got = kernels.edit_conv(**operands, neighbours=neighbours, weight=weight, bias=bias)
    gathered = looked_up(operands, neighbours).reshape(targets, taps * channels).astype(np.float64)
    expected = gathered @ weight.astype(np.float64).T + (0 if bias is None else bias.astype(np.float64))
    close(got, expected, dtype)


@st.composite
def tails(draw: st.DrawFn) -> dict[str, Any]:
    """Which parts a tail has."""
    parts = {name: draw(st.booleans()) for name in ("gate", "residual", "kept", "affine")}
    return {**parts, "activation": draw(st.sampled_from(sorted(ACTIVATIONS)))}


class DrawnTail:
    """A tail with random operands, for the kernel and for numpy."""

    def __init__(self, parts: dict[str, Any], generator: np.random.Generator, rows: int, columns: int, dtype: str):
        self.parts = parts
        per_column = {name: drawn(generator, (columns,), dtype) for name in ("gate", "factor", "shift")}
        self.arrays = {**per_column, "residual": drawn(generator, (rows, columns), dtype)}
        self.kept = poisoned((rows, columns), DTYPES[dtype])
        there = {"gate": parts["gate"], "residual": parts["residual"], "kept": parts["kept"]}
        there |= {"factor": parts["affine"], "shift": parts["affine"]}
        places = {name: array.ctypes.data for name, array in {**self.arrays, "kept": self.kept}.items() if there[name]}
        self.operand = KernelTail(**places, activation=ACTIVATIONS[parts["activation"]])

    def check(self, x: np.ndarray, got: np.ndarray, dtype: str) -> None:
        """Compares the results of what a product has before the tail."""
        wide = {name: array.astype(np.float64) for name, array in self.arrays.items()}
        if self.parts["gate"]:
            x = x * wide["gate"]
        if self.parts["residual"]:
            x = x + wide["residual"]
        if self.parts["kept"]:
            close(self.kept, x, dtype)
        if self.parts["affine"]:
            x = x * wide["factor"] + wide["shift"]
        close(got, activated(x, self.parts["activation"]), dtype)


def activated(x: np.ndarray, activation: str) -> np.ndarray:
    erf = np.vectorize(math.erf, otypes=[np.float64])
    return {
        "": x,
        "Silu": x / (1 + np.exp(-x)),
        "Gelu": 0.5 * x * (1 + erf(x / math.sqrt(2))) if x.size else x,
        "TanhGelu": 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
    }[activation]


@FEW
@given(seed=st.integers(0, 999), targets=st.integers(0, 70), columns=st.integers(1, 70), parts=tails(), dtype=TYPE)
def test_edit_conv_with_a_tail(
    kernels: HostKernels, seed: int, targets: int, columns: int, parts: dict[str, Any], dtype: str
) -> None:
    generator = np.random.default_rng(seed)
    operands = table(generator, 12, 20, 5, (8,), dtype)
    neighbours = generator.integers(0, 18, (targets, 9)).astype(np.int64)
    weight = drawn(generator, (columns, 72), dtype) / np.array(9, DTYPES[dtype])
    bias = drawn(generator, (columns,), dtype)
    tail = DrawnTail(parts, generator, targets, columns, dtype)
    got = kernels.edit_conv(**operands, neighbours=neighbours, weight=weight, bias=bias, tail=tail.operand)
    gathered = looked_up(operands, neighbours).reshape(targets, 72).astype(np.float64)
    tail.check(gathered @ weight.astype(np.float64).T + bias.astype(np.float64), got, dtype)


@FEW
@given(
    seed=st.integers(0, 999), rows=st.integers(0, 70), channels=st.sampled_from([1, 8, 13, 40, 64]),
    columns=st.sampled_from([1, 8, 13, 64, 72]), transposed=st.booleans(), biased=st.booleans(), parts=tails(),
    dtype=TYPE,
)  # fmt: skip
def test_row_linear(
    kernels: HostKernels, seed: int, rows: int, channels: int, columns: int, transposed: bool, biased: bool,
    parts: dict[str, Any], dtype: str,
) -> None:  # fmt: skip
    generator = np.random.default_rng(seed)
    x = drawn(generator, (rows, channels), dtype)
    weight = drawn(generator, (columns, channels), dtype) / np.array(np.sqrt(channels), DTYPES[dtype])
    bias = drawn(generator, (columns,), dtype) if biased else None
    tail = DrawnTail(parts, generator, rows, columns, dtype)
    stored = weight if transposed else np.ascontiguousarray(weight.T)
    got = kernels.row_linear(x, stored, transposed, bias, tail.operand)
    product = x.astype(np.float64) @ weight.astype(np.float64).T
    tail.check(product + (0 if bias is None else bias.astype(np.float64)), got, dtype)


@pytest.mark.parametrize("dtype", sorted(DTYPES))
@pytest.mark.parametrize(("rows", "channels", "columns"), [(3, 128, 5), (1, 300, 64), (70, 512, 130), (5, 1000, 8)])
def test_products_of_few_rows_are_cut_along_their_depth(
    kernels: HostKernels, monkeypatch: pytest.MonkeyPatch, rows: int, channels: int, columns: int, dtype: str
) -> None:
    generator = np.random.default_rng(rows)
    x = drawn(generator, (rows, channels), dtype)
    weight = drawn(generator, (columns, channels), dtype) / np.array(np.sqrt(channels), DTYPES[dtype])
    bias = drawn(generator, (columns,), dtype)
    parts = {"gate": True, "residual": True, "kept": True, "affine": True, "activation": "Silu"}
    product = x.astype(np.float64) @ weight.astype(np.float64).T + bias.astype(np.float64)
    cut = DrawnTail(parts, generator, rows, columns, dtype)
    got = kernels.row_linear(x, weight, True, bias, cut.operand)
    cut.check(product, got, dtype)
    again = kernels.row_linear(x, weight, True, bias, cut.operand)
    assert again.tobytes() == got.tobytes()
    monkeypatch.setattr(kernels, "workspace", None)
    whole = DrawnTail(parts, np.random.default_rng(1), rows, columns, dtype)
    whole.check(product, kernels.row_linear(x, weight, True, bias, whole.operand), dtype)


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
@pytest.mark.parametrize("width", [128, 160, 256])
def test_edit_attention_of_wide_heads(kernels: HostKernels, width: int, dtype: str) -> None:
    generator = np.random.default_rng(width)
    query, key, value = (drawn(generator, (n, 1, width), dtype) for n in (5, 37, 37))
    slot = kernels.slots(np.zeros(0, np.int64), 37)
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
