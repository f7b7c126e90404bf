"""CUDA kernels, run on the host block by block, against plain numpy in double precision."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from retouch.trt_plugins._kernel_library import ACTIVATIONS, KernelTail
from tests.trt_plugins.drawn_operands import FEW, TYPE, activated, close, drawn, table
from tests.trt_plugins.host_kernels import DTYPES, HostKernels, poisoned


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


def test_a_halo_outside_of_the_cached_tensor_is_the_pad_row(kernels: HostKernels) -> None:
    operands = table(np.random.default_rng(0), 2, 3, 3, (4,), "float32")
    operands["pad"] += 7
    operands["halo"] = np.array([1, 3, -1])
    got = kernels.gather_rows(**operands, neighbours=np.array([[0, 2, 3, 4]]))[0]
    assert (got[:2] == [operands["rows"][0], operands["cached"][1]]).all() and (got[2:] == 7).all()


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
    seed=st.integers(0, 999),
    sizes=st.lists(st.integers(1, 6), min_size=1, max_size=4),
    axes=st.data(),
    share=st.floats(0, 1),
    dtype=TYPE,
    in_place=st.booleans(),
)
def test_scatter_rows(
    kernels: HostKernels, seed: int, sizes: list[int], axes: st.DataObject, share: float, dtype: str, in_place: bool
) -> None:
    generator = np.random.default_rng(seed)
    axis = axes.draw(st.integers(0, len(sizes) - 1))
    end = axes.draw(st.integers(axis + 1, len(sizes)))
    cached = drawn(generator, tuple(sizes), dtype)
    lead, count, rest = (int(np.prod(part)) for part in (sizes[:axis], sizes[axis:end], sizes[end:]))
    chosen = generator.permutation(count)[: round(share * count)].astype(np.int64)
    rows = drawn(generator, (*sizes[:axis], len(chosen), *sizes[end:]), dtype)
    expected = cached.copy().reshape(lead, count, rest)
    expected[:, chosen] = rows.reshape(lead, len(chosen), rest)
    index = np.where(generator.random(len(chosen)) < 0.5, chosen, chosen - count)
    got = kernels.scatter_rows(cached.copy(), index, rows, axis, end, in_place=in_place)
    assert got.tobytes() == expected.tobytes()


def test_scatter_rows_passes_over_what_is_outside(kernels: HostKernels) -> None:
    cached, rows = np.zeros((2, 3), np.float32), np.arange(1, 7, dtype=np.float32).reshape(2, 3)
    got = kernels.scatter_rows(cached, np.array([3, -4, 1]), rows, 1, 2)
    assert got.tolist() == [[0, 3, 0], [0, 6, 0]]


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


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize(("channels", "columns", "transposed"), [(8, 70, True), (160, 72, False), (24, 65, False)])
def test_many_rows_come_in_larger_tiles(
    kernels: HostKernels, channels: int, columns: int, transposed: bool, dtype: str
) -> None:
    generator = np.random.default_rng(columns)
    x = drawn(generator, (530, channels), dtype)
    weight = drawn(generator, (columns, channels), dtype) / np.array(np.sqrt(channels), DTYPES[dtype])
    parts = {"gate": False, "residual": True, "kept": False, "affine": False, "activation": ""}
    tail = DrawnTail(parts, generator, 530, columns, dtype)
    stored = weight if transposed else np.ascontiguousarray(weight.T)
    got = kernels.row_linear(x, stored, transposed, None, tail.operand)
    tail.check(x.astype(np.float64) @ weight.astype(np.float64).T, got, dtype)


def test_convolutions_of_many_rows_find_neighbours_of_every_tap(kernels: HostKernels) -> None:
    generator = np.random.default_rng(0)
    operands = table(generator, 530, 20, 5, (16,), "float16")
    neighbours = generator.integers(0, 536, (530, 9)).astype(np.int64)
    weight = drawn(generator, (66, 144), "float16") / np.array(12, np.float16)
    got = kernels.edit_conv(**operands, neighbours=neighbours, weight=weight, bias=None)
    gathered = looked_up(operands, neighbours).reshape(530, -1).astype(np.float64)
    close(got, gathered @ weight.astype(np.float64).T, "float16")
