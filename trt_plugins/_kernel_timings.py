"""How fast the kernels are, against the card's own copy and the framework's attention and convolution."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retouch.trt_plugins._card import Card
from retouch.trt_plugins._kernel_library import TYPES, WORKSPACE, KernelLibrary

__all__ = ["Sizes", "Timing", "time_kernels"]

_HALF = TYPES["float16"]
_TAPS = 9


@dataclass(frozen=True)
class Sizes:
    """What is checked and timed.

    Attributes:
        checked_rows: active rows of what is checked.
        copied: bytes that row movement writes.
        channels: channels of rows and convolutions.
        image: side of the image that the framework's convolution computes.
        conv_rows: active rows of convolutions.
        heads: heads of attention.
        queries: active queries.
        keys: keys.
        widths: widths of a head.
    """

    checked_rows: int = 300
    copied: int = 256 << 20
    channels: int = 320
    image: int = 64
    conv_rows: tuple[int, ...] = (128, 1024, 4096)
    heads: int = 16
    queries: int = 1024
    keys: int = 4096
    widths: tuple[int, ...] = (64, 128)


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


def time_kernels(card: Card, library: KernelLibrary, sizes: Sizes) -> list[Timing]:
    """The times of row movement, attention and convolutions in float16, on random data."""
    return [_gather(card, library, sizes), *_convs(card, library, sizes), *_attentions(card, library, sizes)]


def _random(*shape: int) -> NDArray[Any]:
    return np.random.default_rng(0).standard_normal(shape, dtype=np.float32).astype(np.float16)


def _gather(card: Card, library: KernelLibrary, sizes: Sizes) -> Timing:
    row_bytes = 2 * sizes.channels
    entries = sizes.copied // row_bytes
    rows = card.upload(_random(entries, sizes.channels))
    nothing, halo = card.upload(_random(1, sizes.channels)), card.upload(np.zeros(1, np.int64))
    index = card.upload(np.random.default_rng(1).permutation(entries).astype(np.int64))
    out = card.upload(np.zeros(entries * row_bytes, np.uint8))
    operands = (rows.address, entries, nothing.address, halo.address, 0, nothing.address)

    def run() -> None:
        library.call("gather_rows", out.address, *operands, index.address, entries, row_bytes, None)

    milliseconds = card.milliseconds(run)
    moved = 2 * entries * row_bytes
    copied = 2 * sizes.copied / card.copy_milliseconds(sizes.copied) * 1e3
    return Timing(
        f"gather_rows, {entries} rows of {row_bytes} bytes",
        milliseconds,
        moved / milliseconds * 1e3,
        "B/s",
        copied,
        "copy",
    )


def _convs(card: Card, library: KernelLibrary, sizes: Sizes) -> list[Timing]:
    channels = sizes.channels
    per_row = 2 * _TAPS * channels * channels
    full = per_row * sizes.image**2 / card.conv_milliseconds(sizes.image, channels) * 1e3
    weight, bias = card.upload(_random(channels, _TAPS * channels)), card.upload(_random(channels))
    workspace = card.upload(np.zeros(WORKSPACE, np.uint8))
    nothing, halo = card.upload(_random(1, channels)), card.upload(np.zeros(1, np.int64))
    found = []
    for rows in sizes.conv_rows:
        source, out = card.upload(_random(rows, channels)), card.upload(_random(rows, channels))
        index = card.upload(np.random.default_rng(1).integers(0, rows, (rows, _TAPS)).astype(np.int64))
        table = (source.address, rows, nothing.address, halo.address, 0, nothing.address)
        factors = (index.address, weight.address, bias.address, None)
        operands = (*table, *factors, rows, _TAPS, channels, channels, workspace.address, None)
        milliseconds = card.milliseconds(lambda o=out, a=operands: library.call("edit_conv", _HALF, o.address, *a))  # type: ignore[misc]
        name = f"edit_conv, {rows} rows, 3x3, {channels} channels"
        found.append(Timing(name, milliseconds, per_row * rows / milliseconds * 1e3, "FLOP/s", full, "convolution"))
    return found


def _attentions(card: Card, library: KernelLibrary, sizes: Sizes) -> list[Timing]:
    heads, queries, keys = sizes.heads, sizes.queries, sizes.keys
    slot = card.upload(np.full(keys, -1, np.int32))
    workspace = card.upload(np.zeros(WORKSPACE, np.uint8))
    found = []
    for width in sizes.widths:
        query, key, value = (card.upload(_random(count, heads, width)) for count in (queries, keys, keys))
        out = card.upload(_random(queries, heads, width))
        operands = (
            out.address, query.address, key.address, value.address, key.address, value.address, slot.address,
            heads, queries, keys, width, width, width**-0.5, workspace.address, None,
        )  # fmt: skip
        milliseconds = card.milliseconds(lambda a=operands: library.call("edit_attention", _HALF, *a))  # type: ignore[misc]
        operations = 4 * heads * queries * keys * width
        reference = operations / card.attention_milliseconds(heads, queries, keys, width) * 1e3
        name = f"edit_attention, {heads} heads of {width}, {queries} queries, {keys} keys"
        found.append(Timing(name, milliseconds, operations / milliseconds * 1e3, "FLOP/s", reference, "attention"))
    return found
