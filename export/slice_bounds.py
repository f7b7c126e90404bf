"""What a Slice with constant bounds reads."""

from __future__ import annotations

import onnx_ir as ir

from retouch.export.model_shapes import constant, normal_axis, shape_of

__all__ = ["slice_positions"]


def slice_positions(node: ir.Node) -> dict[int, list[int]] | None:
    """Per axis that a Slice changes, the positions that it reads; ``None`` if its bounds are not constant."""
    given = [constant(value) for value in node.inputs[1:]]
    if any(array is None and value is not None for array, value in zip(given, node.inputs[1:], strict=True)):
        return None
    shape = shape_of(node.inputs[0])
    starts, ends = ([int(number) for number in array] for array in given[:2] if array is not None)
    axes = [int(axis) for axis in given[2]] if len(given) > 2 and given[2] is not None else range(len(starts))
    steps = [int(step) for step in given[3]] if len(given) > 3 and given[3] is not None else [1] * len(starts)
    found = {}
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        size = shape[normal_axis(axis, len(shape))]
        positions = list(range(size))[_slice(start, end, step, size)]
        if positions != list(range(size)):
            found[normal_axis(axis, len(shape))] = positions
    return found


def _slice(start: int, end: int, step: int, size: int) -> slice:
    """Python's form of a slice; in ONNX's, an end before the first position is written as a large negative number."""
    return slice(start, None if step < 0 and end < -size else end, step)
