"""Per-axis source lists and weights of the ONNX operator Resize."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from retouch.errors import ExportError
from retouch.region._windows import AxisIndices

AxisWeights = tuple[tuple[float, ...], ...]
"""Per target coordinate along an axis, one weight per entry it reads."""

Floats = NDArray[np.float32]
Rounded = NDArray[np.float64]
Choice = TypeVar("Choice")

# Engines compute source coordinates in single precision, and a coordinate next to an integer decides which row is read:
# another precision would pick other rows than the model's own Resize. ONNX Runtime takes what is this close to the
# middle of two rows for the middle.
TIE = 1e-6


@dataclass(frozen=True)
class _Axis:
    size_in: int
    size_out: int
    scale: np.float32


def nearest_axis(
    size_in: int,
    size_out: int,
    scale: float,
    coordinate_transformation_mode: str = "half_pixel",
    nearest_mode: str = "round_prefer_floor",
) -> AxisIndices:
    """The one source coordinate that each target coordinate of a nearest Resize reads.

    Args:
        size_in: source size of the axis.
        size_out: target size of the axis.
        scale: the operator's scale for the axis, ``size_out / size_in`` if it was given sizes.
        coordinate_transformation_mode: the operator's attribute.
        nearest_mode: the operator's attribute.
    """
    rounding = _choice(NEAREST_MODES, "nearest_mode", nearest_mode)
    positions = source_positions(size_in, size_out, scale, coordinate_transformation_mode)
    nearest = np.clip(rounding(positions).astype(np.int64), 0, size_in - 1)
    return tuple((int(source),) for source in nearest)


def linear_axis(
    size_in: int, size_out: int, scale: float, coordinate_transformation_mode: str = "half_pixel"
) -> tuple[AxisIndices, AxisWeights]:
    """The two source coordinates that each target coordinate of a linear Resize reads, and their weights.

    Positions beyond an edge read the edge. A position on a source coordinate reads that one twice, with weights 1 and
    0, so that no row is read for nothing.

    Args:
        size_in: source size of the axis.
        size_out: target size of the axis.
        scale: the operator's scale for the axis, ``size_out / size_in`` if it was given sizes.
        coordinate_transformation_mode: the operator's attribute.
    """
    positions = source_positions(size_in, size_out, scale, coordinate_transformation_mode)
    positions = np.clip(positions, 0, np.float32(size_in - 1))
    low = np.floor(positions)
    high = np.ceil(positions)
    sources = tuple((int(first), int(second)) for first, second in zip(low, high, strict=True))
    upper = positions - low
    lower = np.where(low == high, np.float32(1), high - positions)
    return sources, tuple((float(first), float(second)) for first, second in zip(lower, upper, strict=True))


def source_positions(size_in: int, size_out: int, scale: float, coordinate_transformation_mode: str) -> Floats:
    """The position along the source axis, in single precision, that each target coordinate of a Resize stands for."""
    return _positions(_Axis(size_in, size_out, np.float32(scale)), coordinate_transformation_mode)


def _positions(axis: _Axis, mode: str) -> Floats:
    transform = _choice(COORDINATE_MODES, "coordinate_transformation_mode", mode)
    target = np.arange(axis.size_out, dtype=np.float32)
    if axis.scale == 1 and axis.size_in == axis.size_out:
        return target
    return transform(target, axis)


def _half_pixel(target: Floats, axis: _Axis) -> Floats:
    return (target + np.float32(0.5)) / axis.scale - np.float32(0.5)


def _pytorch_half_pixel(target: Floats, axis: _Axis) -> Floats:
    return _half_pixel(target, axis) if axis.size_out > 1 else np.zeros_like(target)


def _half_pixel_symmetric(target: Floats, axis: _Axis) -> Floats:
    adjustment = np.float32(axis.size_out) / (axis.scale * np.float32(axis.size_in))
    offset = np.float32(axis.size_in / 2) * (np.float32(1) - adjustment)
    # Unlike the other modes, this one is evaluated in double precision and then rounded.
    wide = target.astype(np.float64)
    return (float(offset) + (wide + 0.5) / float(axis.scale) - 0.5).astype(np.float32)


def _asymmetric(target: Floats, axis: _Axis) -> Floats:
    return target / axis.scale


def _align_corners(target: Floats, axis: _Axis) -> Floats:
    if axis.size_out == 1:
        return np.zeros_like(target)
    return target * np.float32(axis.size_in - 1) / np.float32(axis.size_out - 1)


def _round_prefer_floor(position: Floats) -> Rounded:
    return np.ceil(position.astype(np.float64) - (0.5 + TIE))


def _round_prefer_ceil(position: Floats) -> Rounded:
    return np.floor(position.astype(np.float64) + (0.5 + TIE))


def _floor(position: Floats) -> Rounded:
    return np.floor(position.astype(np.float64))


def _ceil(position: Floats) -> Rounded:
    return np.ceil(position.astype(np.float64))


COORDINATE_MODES: Mapping[str, Callable[[Floats, _Axis], Floats]] = MappingProxyType(
    {
        "half_pixel": _half_pixel,
        "pytorch_half_pixel": _pytorch_half_pixel,
        "half_pixel_symmetric": _half_pixel_symmetric,
        "asymmetric": _asymmetric,
        "align_corners": _align_corners,
    }
)

NEAREST_MODES: Mapping[str, Callable[[Floats], Rounded]] = MappingProxyType(
    {
        "round_prefer_floor": _round_prefer_floor,
        "round_prefer_ceil": _round_prefer_ceil,
        "floor": _floor,
        "ceil": _ceil,
    }
)


def _choice(choices: Mapping[str, Choice], attribute: str, value: str) -> Choice:
    if value not in choices:
        raise ExportError(
            f"Expected {attribute} of Resize to be one of {', '.join(choices)}, got {value!r}; "
            "keep such a Resize dense or change the attribute in the model."
        )
    return choices[value]
