"""Every kernel against numpy in double precision, on random data, into poisoned outputs."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from retouch.trt_plugins._card import Buffer, Card
from retouch.trt_plugins._kernel_library import ACTIVATIONS, TYPES, WORKSPACE, KernelLibrary, KernelTail

__all__ = ["KernelCheck", "check_kernels"]

Array = NDArray[Any]

_DTYPES = {
    "float32": np.dtype(np.float32),
    "float16": np.dtype(np.float16),
    "bfloat16": np.dtype(ml_dtypes.bfloat16),
}
_TOLERANCE = {"float32": 1e-5, "float16": 2e-3, "bfloat16": 1.6e-2}
_COPIES = ("gather_rows", "masked_merge", "scatter_rows")
_POISON = 0xA5


@dataclass(frozen=True)
class KernelCheck:
    """How far a kernel was from its reference.

    Attributes:
        kernel: its name.
        dtype: the element type.
        error: Euclidean norm of the difference over that of the reference.
        tolerance: what it may be.
    """

    kernel: str
    dtype: str
    error: float
    tolerance: float

    @property
    def passed(self) -> bool:
        """Whether it is right; NaN never is."""
        return self.error <= self.tolerance


def check_kernels(card: Card, library: KernelLibrary, *, rows: int, seed: int = 0) -> Iterator[KernelCheck]:
    """What every kernel computes, in every type, against references.

    Args:
        card: where the kernels run.
        library: the kernels, compiled for it.
        rows: number of active rows.
        seed: of the random data.
    """
    for dtype in TYPES:
        generator = np.random.default_rng(seed)
        for name, got, expected in _Cases(card, library, generator, dtype, rows).run():
            scale = float(np.linalg.norm(expected.astype(np.float64))) or 1.0
            error = float(np.linalg.norm(got.astype(np.float64) - expected.astype(np.float64))) / scale
            exact = name in _COPIES
            yield KernelCheck(name, dtype, error, 0.0 if exact else _TOLERANCE[dtype])


class _Cases:
    def __init__(
        self, card: Card, library: KernelLibrary, generator: np.random.Generator, dtype: str, rows: int
    ) -> None:
        self.card, self.library, self.generator, self.rows = card, library, generator, rows
        self.dtype, self.type = _DTYPES[dtype], TYPES[dtype]
        self.workspace: Buffer | None = None

    def run(self) -> Iterator[tuple[str, Array, Array]]:
        """Names of kernels, what they computed, and what is right."""
        yield self._gather_rows()
        yield self._masked_merge()
        yield self._scatter_rows()
        yield self._edit_conv()
        yield self._row_linear()
        yield self._edit_attention()
        yield self._group_moments()
        yield self._edit_group_norm()

    def _drawn(self, *shape: int) -> Array:
        return self.generator.standard_normal(shape).astype(self.dtype)

    def _output(self, *shape: int) -> tuple[Array, Buffer]:
        size = int(np.prod(shape)) * self.dtype.itemsize
        poisoned = np.full(size, _POISON, np.uint8).view(self.dtype).reshape(shape)
        return poisoned, self.card.upload(poisoned)

    def _workspace(self) -> int:
        if self.workspace is None:
            self.workspace = self.card.upload(np.full(WORKSPACE, _POISON, np.uint8))
        return self.workspace.address

    def _table(self, channels: int) -> tuple[list[Buffer], list[int], Array]:
        """A table's operands, as buffers and as arguments, and its rows."""
        active, cached, pad = self._drawn(self.rows, channels), self._drawn(64, channels), self._drawn(1, channels)
        halo = self.generator.permutation(64)[:40].astype(np.int64)
        buffers = [self.card.upload(array) for array in (active, cached, halo, pad)]
        a, c, h, p = (buffer.address for buffer in buffers)
        return buffers, [a, self.rows, c, len(cached), h, len(halo), p], np.concatenate([active, cached[halo], pad])

    def _neighbours(self, table: Array) -> Array:
        return self.generator.integers(0, len(table), (self.rows, 9)).astype(np.int64)

    def _gather_rows(self) -> tuple[str, Array, Array]:
        keep, operands, table = self._table(40)
        neighbours = self._neighbours(table)
        like, out = self._output(self.rows, 9, 40)
        index = self.card.upload(neighbours)
        self.library.call("gather_rows", out.address, *operands, index.address, neighbours.size, table[0].nbytes, None)
        got = self.card.download(out, like)
        del keep
        return "gather_rows", got, table[neighbours]

    def _masked_merge(self) -> tuple[str, Array, Array]:
        cached, rows = self._drawn(2 * self.rows, 24), self._drawn(self.rows, 24)
        chosen = self.generator.permutation(2 * self.rows)[: self.rows].astype(np.int64)
        expected = cached.copy()
        expected[chosen] = rows
        like, out = self._output(*cached.shape)
        sizes = np.array([len(cached)], np.int64)
        source, index, fresh = (self.card.upload(array) for array in (cached, chosen, rows))
        self.library.call(
            "masked_merge", out.address, source.address, sizes.ctypes.data, 1, index.address, fresh.address,
            self.rows, rows[0].nbytes, None,
        )  # fmt: skip
        return "masked_merge", self.card.download(out, like), expected

    def _scatter_rows(self) -> tuple[str, Array, Array]:
        """Along an axis with others before and behind it."""
        cached, rows = self._drawn(3, 2 * self.rows, 5), self._drawn(3, self.rows, 5)
        chosen = self.generator.permutation(2 * self.rows)[: self.rows].astype(np.int64)
        expected = cached.copy()
        expected[:, chosen] = rows
        like, out = self._output(*cached.shape)
        source, index, fresh = (self.card.upload(array) for array in (cached, chosen, rows))
        self.library.call(
            "scatter_rows", out.address, source.address, 3, 2 * self.rows, index.address, fresh.address,
            self.rows, rows[0, 0].nbytes, None,
        )  # fmt: skip
        return "scatter_rows", self.card.download(out, like), expected

    def _edit_conv(self) -> tuple[str, Array, Array]:
        keep, operands, table = self._table(48)
        neighbours = self._neighbours(table)
        weight, bias = self._drawn(72, 9 * 48), self._drawn(72)
        like, out = self._output(self.rows, 72)
        index, factors, shift = (self.card.upload(array) for array in (neighbours, weight, bias))
        self.library.call(
            "edit_conv", self.type, out.address, *operands, index.address, factors.address, shift.address, None,
            self.rows, 9, 48, 72, self._workspace(), None,
        )  # fmt: skip
        columns = table[neighbours].reshape(self.rows, -1).astype(np.float64)
        got = self.card.download(out, like)
        del keep
        return "edit_conv", got, columns @ weight.astype(np.float64).T + bias.astype(np.float64)

    def _row_linear(self) -> tuple[str, Array, Array]:
        """With a whole tail."""
        rows, weight, bias = self._drawn(self.rows, 40), self._drawn(40, 56), self._drawn(56)
        gate, factor, shift = (self._drawn(56) for _ in range(3))
        residual = self._drawn(self.rows, 56)
        like, out = self._output(self.rows, 56)
        _, kept = self._output(self.rows, 56)
        buffers = [self.card.upload(array) for array in (rows, weight, bias, gate, residual, factor, shift)]
        r, w, b, *places = (buffer.address for buffer in buffers)
        tail = KernelTail(places[0], places[1], kept.address, places[2], places[3], ACTIVATIONS["Silu"])
        self.library.call(
            "row_linear",
            self.type,
            out.address,
            r,
            w,
            0,
            b,
            ctypes.addressof(tail),
            self.rows,
            40,
            56,
            self._workspace(),
            None,
        )
        wide = [array.astype(np.float64) for array in (rows, weight, bias, gate, residual, factor, shift)]
        total = (wide[0] @ wide[1] + wide[2]) * wide[3] + wide[4]
        mapped = total * wide[5] + wide[6]
        got = np.concatenate([self.card.download(out, like), self.card.download(kept, like)])
        del buffers
        return "row_linear", got, np.concatenate([mapped / (1 + np.exp(-mapped)), total])

    def _edit_attention(self) -> tuple[str, Array, Array]:
        heads, keys, width = 3, 2 * self.rows + 5, 64
        query, key, value = (self._drawn(count, heads, width) for count in (self.rows, keys, keys))
        chosen = self.generator.permutation(keys)[: self.rows].astype(np.int64)
        fresh = [self._drawn(self.rows, heads, width) for _ in range(2)]
        like, out = self._output(*query.shape)
        slot = self.card.upload(np.full(keys, _POISON, np.int32))
        index = self.card.upload(chosen)
        self.library.call("fill_slots", slot.address, index.address, len(chosen), keys, None)
        buffers = [self.card.upload(array) for array in (query, key, value, *fresh)]
        self.library.call(
            "edit_attention", self.type, out.address, *(buffer.address for buffer in buffers), slot.address,
            heads, self.rows, keys, width, width, width**-0.5, self._workspace(), None,
        )  # fmt: skip
        key[chosen], value[chosen] = fresh
        scores = np.einsum("qhd,khd->hqk", query.astype(np.float64), key.astype(np.float64)) * width**-0.5
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        expected = np.einsum("hqk,khd->qhd", weights / weights.sum(-1, keepdims=True), value.astype(np.float64))
        return "edit_attention", self.card.download(out, like), expected

    def _group_moments(self) -> tuple[str, Array, Array]:
        cached, rows = self._drawn(2 * self.rows, 96), self._drawn(self.rows, 96)
        chosen = self.generator.permutation(2 * self.rows)[: self.rows].astype(np.int64)
        moments = _moments(cached).astype(np.float32)
        poisoned = np.full(moments.nbytes, _POISON, np.uint8).view(np.float32).reshape(moments.shape)
        out = self.card.upload(poisoned)
        buffers = [self.card.upload(array) for array in (rows, cached, chosen, moments)]
        self.library.call(
            "group_moments", self.type, out.address, buffers[0].address, buffers[1].address, len(cached),
            buffers[2].address, buffers[3].address, self.rows, 96, 8, 1 / (cached.size / 8), None,
        )  # fmt: skip
        cached[chosen] = rows
        return "group_moments", self.card.download(out, poisoned), _moments(cached)

    def _edit_group_norm(self) -> tuple[str, Array, Array]:
        x, gain, bias = self._drawn(self.rows, 96), self._drawn(96), self._drawn(96)
        moments = np.stack([self.generator.standard_normal(8), self.generator.uniform(0.5, 2, 8)]).astype(np.float32)
        like, out = self._output(*x.shape)
        buffers = [self.card.upload(array) for array in (x, moments, gain, bias)]
        self.library.call(
            "edit_group_norm", self.type, out.address, *(buffer.address for buffer in buffers), ACTIVATIONS["Silu"],
            self.rows, 96, 8, 1e-5, None,
        )  # fmt: skip
        mean, variance = (np.repeat(part.astype(np.float64), 12) for part in moments)
        expected = (x.astype(np.float64) - mean) / np.sqrt(variance + 1e-5) * gain + bias
        return "edit_group_norm", self.card.download(out, like), expected / (1 + np.exp(-expected))


def _moments(x: Array) -> Array:
    """Means and variances of eight groups of channels."""
    by_group = x.astype(np.float64).reshape(len(x), 8, -1)
    return np.stack([by_group.mean((0, 2)), by_group.var((0, 2))])
