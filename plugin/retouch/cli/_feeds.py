"""Feeds from files and numbers."""

from __future__ import annotations

import math
import zipfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retouch.bundle import TensorSpec
from retouch.cli._images import Range, read_image
from retouch.errors import FeedError

IMAGES = (".png",)

INPUT_HELP = (
    "A feed, NAME=VALUE; may be repeated. VALUE is a .npy file, a .png image (see --png-range), or a number, which is "
    "repeated to the input's shape. FILE.npz without a name gives all feeds that are in it."
)
RANGE_HELP = (
    "The values of black and white in .png files, inputs and previews alike: a pixel of share s of white becomes "
    "BLACK + s * (WHITE - BLACK). Grey or RGB images become tensors [1, C, H, W]."
)


def read_feeds(options: Iterable[str], inputs: Sequence[TensorSpec], levels: Range) -> dict[str, NDArray[Any]]:
    """The feeds that the options give, later ones instead of earlier ones.

    Raises:
        FeedError: an option is no feed, names no input, or its file cannot be read.
    """
    specs = {spec.name: spec for spec in inputs}
    feeds: dict[str, NDArray[Any]] = {}
    for option in options:
        name, separator, value = option.partition("=")
        if separator and name in specs:
            feeds[name] = _feed(specs[name], value, levels)
        elif option.endswith(".npz"):
            feeds.update(read_npz(Path(option)))
        else:
            raise FeedError(
                f"Expected --input NAME=VALUE with NAME among {', '.join(map(repr, specs))}, or a .npz file, "
                f"got {option!r}. `retouch inspect` lists a bundle's inputs."
            )
    return feeds


def read_npz(path: Path) -> dict[str, NDArray[Any]]:
    """The arrays in a .npz file, by name.

    Raises:
        FeedError: it cannot be read.
    """
    try:
        with np.load(path, allow_pickle=False) as archive:
            if not isinstance(archive, np.lib.npyio.NpzFile):
                raise FeedError(f"Expected {path} to be a .npz archive, got a single array. Save it with numpy.savez.")
            return {name: archive[name] for name in archive.files}
    except (OSError, ValueError, EOFError, AttributeError, TypeError, zipfile.BadZipFile) as error:
        raise FeedError(
            f"Expected {path} to be a readable .npz file, got: {error}. Save it with numpy.savez."
        ) from error


def read_npy(path: Path) -> NDArray[Any]:
    """The array in a .npy file.

    Raises:
        FeedError: it cannot be read.
    """
    try:
        array = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise FeedError(
            f"Expected {path} to be a readable .npy file, got: {error}. Save it with numpy.save."
        ) from error
    if not isinstance(array, np.ndarray):
        raise FeedError(f"Expected {path} to be a .npy file of one array, got an archive. Save it with numpy.save.")
    return array


def _feed(spec: TensorSpec, value: str, levels: Range) -> NDArray[Any]:
    try:
        number = float(value)
    except ValueError:
        return _from_file(spec, Path(value), levels)
    return _repeated(spec, number, value)


def _from_file(spec: TensorSpec, path: Path, levels: Range) -> NDArray[Any]:
    ending = path.suffix.lower()
    if ending == ".npy":
        return read_npy(path)
    if ending in IMAGES:
        return read_image(path, spec, levels)
    raise FeedError(
        f"Expected the feed {spec.name!r} as a number or as a file .npy or .png, got {str(path)!r}. "
        "Convert it; a .npz file is given without a name."
    )


def _repeated(spec: TensorSpec, number: float, text: str) -> NDArray[Any]:
    dtype = np.dtype(spec.dtype)
    whole = dtype.kind in "iub"
    if not math.isfinite(number) or (whole and not number.is_integer()):
        raise FeedError(
            f"Expected a {'whole' if whole else 'finite'} number for input {spec.name!r} of dtype {dtype}, got {text}."
        )
    # Integers by way of Python's own, which lose no digit; ranges are checked with the other feeds.
    if whole:
        return np.full(spec.shape, _integer(text, number))
    with np.errstate(over="ignore"):
        filled = np.full(spec.shape, number, dtype)
    if not np.isfinite(filled).all():
        raise FeedError(f"Expected a number that dtype {dtype} of input {spec.name!r} can hold, got {text}.")
    return filled


def _integer(text: str, number: float) -> int:
    try:
        return int(text)
    except ValueError:  # like 1e3
        return int(number)
