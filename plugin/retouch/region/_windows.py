"""Per-axis source lists of convolution and pooling windows."""

from __future__ import annotations

AxisIndices = tuple[tuple[int, ...], ...]
"""Per target coordinate along an axis, one number per entry it reads."""

OUTSIDE = -1
"""The source coordinate that stands for the pad row."""


def window_axis(
    size_in: int, size_out: int, kernel: int, stride: int = 1, pad_begin: int = 0, dilation: int = 1
) -> AxisIndices:
    """The source coordinates that a convolution or pooling window reads: ``i * stride - pad_begin + t * dilation``.

    Coordinates outside the source are -1.
    """
    return tuple(
        tuple(_inside(start + tap * dilation, size_in) for tap in range(kernel))
        for start in range(-pad_begin, size_out * stride - pad_begin, stride)
    )


def transposed_axis(
    size_in: int, size_out: int, kernel: int, stride: int = 1, pad_begin: int = 0, dilation: int = 1
) -> tuple[AxisIndices, AxisIndices]:
    """The source coordinates that a transposed convolution reads, and the kernel tap that goes with each.

    Output coordinate ``o`` reads ``(o + pad_begin - t * dilation) / stride`` through every tap ``t`` for which that is
    a coordinate of the source. Shorter lists are filled with source -1, tap 0 up to the longest one's length.
    """
    reads = [
        [
            (coordinate // stride, tap)
            for tap in range(kernel)
            if (coordinate := position + pad_begin - tap * dilation) % stride == 0
            and 0 <= coordinate // stride < size_in
        ]
        for position in range(size_out)
    ]
    width = max(1, *map(len, reads))
    filled = [entries + [(OUTSIDE, 0)] * (width - len(entries)) for entries in reads]
    sources = tuple(tuple(source for source, _ in entries) for entries in filled)
    taps = tuple(tuple(tap for _, tap in entries) for entries in filled)
    return sources, taps


def _inside(coordinate: int, size: int) -> int:
    return coordinate if 0 <= coordinate < size else OUTSIDE
