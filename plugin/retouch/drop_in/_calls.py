"""Calls in the forms that ONNX Runtime offers them, as feeds and arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from retouch.drop_in._stock import OrtValue
from retouch.errors import FeedError

Arrays = Mapping[str, NDArray[Any]]


def feeds_of(feed: Mapping[str, Any]) -> dict[str, ArrayLike]:
    """Feeds of which some may be an ``OrtValue``."""
    return {name: value.numpy() if hasattr(value, "numpy") else value for name, value in feed.items()}


def requested(names: Sequence[str] | None, outputs: Sequence[str]) -> list[str]:
    """The names of the outputs that a call asks for; none means all.

    Raises:
        FeedError: the model has no such output.
    """
    wanted = list(names or outputs)
    unknown = [name for name in wanted if name not in outputs]
    if unknown:
        raise FeedError(f"Expected outputs among {', '.join(map(repr, outputs))}, got {', '.join(map(repr, unknown))}.")
    return wanted


def copies(arrays: Arrays, names: Sequence[str]) -> list[NDArray[Any]]:
    """Arrays that the caller may write into, in the order of the names."""
    return [np.array(arrays[name], order="C") for name in names]


def vector_item(array: NDArray[Any]) -> object:
    """The array as an item of onnxruntime's vectors of values."""
    return owned(array)._get_c_value()  # noqa: SLF001 # there is no other way into a vector


def owned(array: NDArray[Any]) -> OrtValue:
    """The array as a value with memory of its own: what shares an array's does not keep it alive."""
    value = OrtValue.ortvalue_from_shape_and_type(list(array.shape), array.dtype.type, "cpu", 0)
    value.update_inplace(np.ascontiguousarray(array))
    return value
