"""How fast the kernels are, against the card's own copies and the framework's products, attention and convolutions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retouch.trt_plugins._card import Card
from retouch.trt_plugins._kernel_library import TYPES, WORKSPACE, KernelLibrary

__all__ = ["Sizes", "Timing", "time_kernels"]

_HALF = TYPES["float16"]
_TAPS = 9
_GROUPS = 8


@dataclass(frozen=True)
class Sizes:
    """What is checked and timed.

    Attributes:
        checked_rows: active rows of what is checked.
        copied: bytes that row movement writes.
        channels: channels of rows, products and convolutions.
        image: side of the image that the framework's convolution computes.
        conv_rows: active rows of products, convolutions and norms.
        heads: heads of attention.
        queries: active queries.
        keys: keys.
        widths: widths of a head.
        product: rows, depth and columns of the framework's product.
    """

    checked_rows: int = 300
    copied: tuple[int, ...] = (1 << 20, 16 << 20, 256 << 20)
    channels: int = 320
    image: int = 64
    conv_rows: tuple[int, ...] = (128, 1024, 4096)
    heads: int = 16
    queries: tuple[int, ...] = (128, 1024)
    keys: int = 4096
    widths: tuple[int, ...] = (64, 128)
    product: tuple[int, int, int] = (4096, 4096, 4096)


@dataclass(frozen=True)
class Timing:
    """A kernel's time.

    Attributes:
        what: the kernel and its size.
        milliseconds: the median.
        rate: bytes or operations per second.
        unit: ``B/s`` or ``FLOP/s``.
        reference: the rate that it is compared with.
        against: whose rate that is.
    """

    what: str
    milliseconds: float
    rate: float
    unit: str
    reference: float
    against: str

    @property
    def share(self) -> float:
        """Rate over reference."""
        return self.rate / self.reference


def time_kernels(card: Card, library: KernelLibrary, sizes: Sizes) -> Iterator[Timing]:
    """The times of all kernels in float16, on random data."""
    run = _Timings(card, library, sizes)
    for part in (run.movements, run.products, run.convs, run.attentions, run.norms):
        yield from part()


def _random(*shape: int) -> NDArray[Any]:
    return np.random.default_rng(0).standard_normal(shape, dtype=np.float32).astype(np.float16)


class _Timings:
    def __init__(self, card: Card, library: KernelLibrary, sizes: Sizes) -> None:
        self._card, self._library, self._sizes = card, library, sizes
        self._workspace = card.upload(np.zeros(WORKSPACE, np.uint8))
        rows, depth, columns = sizes.product
        self._product = 2 * rows * depth * columns / card.matmul_milliseconds(rows, depth, columns) * 1e3
        self._copy = {size: 2 * size / card.copy_milliseconds(size) * 1e3 for size in sizes.copied}

    def movements(self) -> Iterator[Timing]:
        """Rows gathered, and put in place, against a copy of as many bytes."""
        row_bytes = 2 * self._sizes.channels
        for size, copy in self._copy.items():
            entries = size // row_bytes
            rows, out = (self._card.upload(np.zeros(entries * row_bytes, np.uint8)) for _ in range(2))
            index = self._card.upload(np.random.default_rng(1).permutation(entries).astype(np.int64))
            halo = self._card.upload(np.zeros(1, np.int64))
            table = (rows.address, entries, rows.address, entries, halo.address, 0, rows.address)
            moved, said = 2 * entries * row_bytes, f"{entries} rows of {row_bytes} bytes"
            end = (index.address, entries, row_bytes)
            yield self._timed(f"gather_rows, {said}", ("gather_rows", out.address, *table, *end), moved, copy, "copy")
            place = (out.address, out.address, 1, entries, index.address, rows.address)
            call = ("scatter_rows", *place, entries, row_bytes)
            yield self._timed(f"scatter_rows in place, {said}", call, moved, copy, "copy")

    def products(self) -> Iterator[Timing]:
        """Products of rows with a weight, against the framework's large product."""
        channels, columns = self._sizes.channels, 4 * self._sizes.channels
        weight, bias = self._card.upload(_random(columns, channels)), self._card.upload(_random(columns))
        for rows in self._sizes.conv_rows:
            source, out = self._card.upload(_random(rows, channels)), self._card.upload(_random(rows, columns))
            operands = (out.address, source.address, weight.address, 1, bias.address, None)
            call = ("row_linear", _HALF, *operands, rows, channels, columns, self._workspace.address)
            name = f"row_linear, {rows} rows, {channels} to {columns}"
            yield self._timed(name, call, 2 * rows * channels * columns, self._product, "matmul")

    def convs(self) -> Iterator[Timing]:
        """Convolutions of rows, against the framework's of a whole image."""
        channels = self._sizes.channels
        per_row = 2 * _TAPS * channels * channels
        whole = self._card.conv_milliseconds(self._sizes.image, channels)
        rate = self._product if whole is None else per_row * self._sizes.image**2 / whole * 1e3
        weight, bias = self._card.upload(_random(channels, _TAPS * channels)), self._card.upload(_random(channels))
        nothing, halo = self._card.upload(_random(1, channels)), self._card.upload(np.zeros(1, np.int64))
        for rows in self._sizes.conv_rows:
            source, out = self._card.upload(_random(rows, channels)), self._card.upload(_random(rows, channels))
            index = self._card.upload(np.random.default_rng(1).integers(0, rows, (rows, _TAPS)).astype(np.int64))
            table = (source.address, rows, nothing.address, 1, halo.address, 0, nothing.address)
            factors = (index.address, weight.address, bias.address, None)
            shape = (rows, _TAPS, channels, channels, self._workspace.address)
            call = ("edit_conv", _HALF, out.address, *table, *factors, *shape)
            name = f"edit_conv, {rows} rows, 3x3, {channels} channels"
            yield self._timed(name, call, per_row * rows, rate, "matmul" if whole is None else "convolution")

    def attentions(self) -> Iterator[Timing]:
        """Attention of few and of many queries, against the framework's of as many queries and keys."""
        heads, keys = self._sizes.heads, self._sizes.keys
        slot = self._card.upload(np.full(keys, -1, np.int32))
        for width in self._sizes.widths:
            key, value = (self._card.upload(_random(keys, heads, width)) for _ in range(2))
            for queries in self._sizes.queries:
                query, out = (self._card.upload(_random(queries, heads, width)) for _ in range(2))
                places = (out, query, key, value, key, value, slot)
                shape = (heads, queries, keys, width, width, width**-0.5, self._workspace.address)
                call = ("edit_attention", _HALF, *(buffer.address for buffer in places), *shape)
                work, own = (
                    4 * heads * queries * keys * width,
                    self._card.attention_milliseconds(heads, queries, keys, width),
                )
                rate = self._product if own is None else work / own * 1e3
                name = f"edit_attention, {heads} heads of {width}, {queries} queries, {keys} keys"
                yield self._timed(name, call, work, rate, "matmul" if own is None else "attention")

    def norms(self) -> Iterator[Timing]:
        """Norms of rows and their moments, against the card's largest copy."""
        channels, copy = self._sizes.channels, list(self._copy.values())[-1]
        moments = self._card.upload(np.ones((2, _GROUPS), np.float32))
        for rows in self._sizes.conv_rows:
            source, cached, out = (self._card.upload(_random(rows, channels)) for _ in range(3))
            index, after = self._card.upload(np.arange(rows)), self._card.upload(np.ones((2, _GROUPS), np.float32))
            size, said = 4 * rows * channels, f"{rows} rows, {channels} channels"
            places = (after.address, source.address, cached.address, rows, index.address, moments.address)
            call: tuple[Any, ...] = ("group_moments", _HALF, *places, rows, channels, _GROUPS, 1e-4)
            yield self._timed(f"group_moments, {said}", call, size, copy, "copy")
            own = (out.address, source.address, moments.address, None, None)
            call = ("edit_group_norm", _HALF, *own, 0, rows, channels, _GROUPS, 1e-5)
            yield self._timed(f"edit_group_norm, {said}", call, size, copy, "copy")

    def _timed(self, what: str, call: tuple[Any, ...], work: float, reference: float, against: str) -> Timing:
        milliseconds = self._card.burst_milliseconds(lambda: self._library.call(*call, self._card.stream))
        unit = "B/s" if against == "copy" else "FLOP/s"
        return Timing(what, milliseconds, work / milliseconds * 1e3, unit, reference, against)
