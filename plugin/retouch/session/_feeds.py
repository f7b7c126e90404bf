"""Feeds, checked against what a model's inputs want."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from retouch.bundle import TensorSpec
from retouch.engines import Engine, Value
from retouch.errors import FeedError


def checked_feeds(
    inputs: Sequence[TensorSpec], feeds: Mapping[str, ArrayLike], *, partial: bool = False
) -> dict[str, NDArray[Any]]:
    """Copies of the feeds with the inputs' dtypes; nobody else holds their memory.

    Args:
        inputs: the model's inputs.
        feeds: one array per input, by name.
        partial: whether inputs may be left out.

    Raises:
        FeedError: an input is missing, a name is not an input's, or a shape or dtype does not fit.
    """
    if not isinstance(feeds, Mapping):
        raise FeedError(
            f"Expected the feeds as a dictionary of arrays by input name, got {type(feeds).__name__}. "
            f"Write {{{inputs[0].name!r}: array}}."
        )
    _check_names([spec.name for spec in inputs], feeds, partial)
    return {spec.name: _checked_feed(spec, feeds[spec.name]) for spec in inputs if spec.name in feeds}


def feed_values(
    engine: Engine, inputs: Sequence[TensorSpec], feeds: Mapping[str, object], *, partial: bool = False
) -> dict[str, Value]:
    """Copies of the feeds as values of an engine; tensors that lie on its device do not leave it.

    Args:
        engine: the engine.
        inputs: the model's inputs.
        feeds: one array, or tensor of a library that has ``__dlpack__``, per input, by name.
        partial: whether inputs may be left out.

    Raises:
        FeedError: an input is missing, a name is not an input's, or a shape or dtype does not fit.
    """
    given: object = feeds
    named: Mapping[str, object] = given if isinstance(given, Mapping) else {}
    specs = {spec.name: spec for spec in inputs}
    adopted = {name: engine.adopt(feed) for name, feed in named.items() if name in specs}
    values = {name: _checked_value(specs[name], value) for name, value in adopted.items() if value is not None}
    if values:
        _check_names([*specs], named, partial)
    others = {name: feed for name, feed in named.items() if name not in values} if values else feeds
    checked = checked_feeds(inputs, others, partial=partial or bool(values))  # type: ignore[arg-type]
    return {**values, **{name: engine.value(array) for name, array in checked.items()}}


def _checked_value(spec: TensorSpec, value: Value) -> Value:
    if (value.shape, value.dtype) != (spec.shape, spec.dtype):
        raise FeedError(
            f"Expected feed {spec.name!r} of shape {spec.shape} and dtype {spec.dtype}, got {value.shape} and "
            f"{value.dtype}. Tensors on the engine's device are taken as they are: convert it there."
        )
    return value


def _check_names(inputs: Sequence[str], feeds: Mapping[str, object], partial: bool) -> None:
    missing = [] if partial else [name for name in inputs if name not in feeds]
    extra = [name for name in feeds if name not in inputs]
    if missing or extra:
        faults = [
            f"{what} {', '.join(map(repr, names))}" for what, names in (("missing", missing), ("extra", extra)) if names
        ]
        raise FeedError(
            f"Expected {'feeds among' if partial else 'exactly the feeds'} {', '.join(map(repr, inputs))}, "
            f"got {', '.join(map(repr, feeds)) or 'none'}: {'; '.join(faults)}. Name feeds like the model's inputs."
        )


def _checked_feed(spec: TensorSpec, feed: ArrayLike) -> NDArray[Any]:
    array = _array(spec, feed)
    if array.shape != spec.shape:
        raise FeedError(
            f"Expected feed {spec.name!r} of shape {spec.shape}, got {array.shape}. "
            "The bundle was exported for this shape: reshape the feed, or export the model again for the other one "
            "(--fix, and --share to store the weights once)."
        )
    dtype = np.dtype(spec.dtype)
    if array.dtype == dtype:
        return np.array(array, order="C")
    return _converted(spec, array, dtype)


def _array(spec: TensorSpec, feed: ArrayLike) -> NDArray[Any]:
    try:
        return np.asarray(feed)
    except (RuntimeError, TypeError, ValueError) as error:  # rows of different lengths, or tensors that need a detour
        raise FeedError(
            f"Expected feed {spec.name!r} to convert to an array of shape {spec.shape}, got: {error}; "
            "give a numpy array."
        ) from error


def _converted(spec: TensorSpec, array: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """The array in another integer or floating dtype, if every element keeps its value."""
    if array.dtype.kind not in "iuf" or dtype.kind not in "iuf":
        raise FeedError(
            f"Expected feed {spec.name!r} of dtype {dtype}, got {array.dtype}, which does not convert to it by itself. "
            "Convert the feed."
        )
    with np.errstate(all="ignore"):
        converted = array.astype(dtype, order="C")
        back = converted.astype(array.dtype)
    kept = (back == array) & ((converted < 0) == (array < 0))  # the largest unsigned numbers wrap there and back
    changed = ~(kept | ((back != back) & (array != array)))
    if changed.any():
        example = array[changed].flat[0]
        raise FeedError(
            f"Expected feed {spec.name!r} of dtype {dtype}, got {array.dtype}, and {int(changed.sum())} of its "
            f"{array.size} elements would change their value (the first is {example!r}). "
            f"If that is meant, convert it yourself: feed.astype({str(dtype)!r})."
        )
    return converted


def merged_feeds(kept: Mapping[str, Value], changed: Mapping[str, Value]) -> dict[str, Value]:
    """A run's feeds with some of them changed; a feed with the same bits stays the very value that the run has."""
    new = {name: value for name, value in changed.items() if not _same(value, kept[name])}
    return {**kept, **new}


def _same(one: Value, other: Value) -> bool:
    return one is other or _same_bits(one.numpy(), other.numpy())


def _same_bits(one: NDArray[Any], other: NDArray[Any]) -> bool:
    return np.array_equal(one.reshape(-1).view(np.uint8), other.reshape(-1).view(np.uint8))
