"""Example feeds for an export, checked before anything is computed with them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray

from retouch.cli._feeds import read_npz
from retouch.errors import FeedError
from retouch.export.load import load_model


def read_example(path: Path | None, model: Path) -> dict[str, NDArray[Any]]:
    """The feeds in a .npz file, some or all of a model's inputs.

    Raises:
        FeedError: the file cannot be read, names no input, or holds an array that does not fit.
        ModelError: the model cannot be read.
    """
    if path is None:
        return {}
    feeds = read_npz(path)
    if model.is_dir():
        return feeds  # checked against the graph that the model becomes
    inputs = {str(value.name): value for value in load_model(model).model.graph.inputs}
    for name, feed in feeds.items():
        if name not in inputs:
            raise FeedError(f"Expected {path} to hold arrays among {', '.join(map(repr, inputs))}, got {name!r}.")
        _check(inputs[name], feed, path)
    return feeds


def _check(value: ir.Value, feed: NDArray[Any], path: Path) -> None:
    wanted = None if value.dtype is None else np.dtype(value.dtype.numpy())
    if wanted is not None and feed.dtype != wanted:
        raise FeedError(f"Expected {value.name!r} in {path} to be {wanted}, got {feed.dtype}. Convert it with astype.")
    dims = None if value.shape is None else list(value.shape)
    if dims is not None and not _fits(dims, feed.shape):
        shown = ", ".join(map(str, dims))
        raise FeedError(f"Expected {value.name!r} in {path} to have the shape ({shown}), got {feed.shape}. Reshape it.")


def _fits(dims: list[int | ir.SymbolicDim], shape: tuple[int, ...]) -> bool:
    return len(dims) == len(shape) and all(
        not isinstance(dim, int) or dim == size for dim, size in zip(dims, shape, strict=True)
    )
