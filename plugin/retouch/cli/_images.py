"""Images as tensors and back."""

from __future__ import annotations

import importlib
import importlib.util
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retouch.bundle import TensorSpec
from retouch.errors import EngineMissingError, FeedError, ResultFileError

_MODES = {1: "L", 3: "RGB", 4: "RGBA"}
_PREVIEW_CHANNELS = (1, 3)


@dataclass(frozen=True)
class Range:
    """The values that black and white stand for."""

    black: float
    white: float

    @classmethod
    def parse(cls, text: str) -> Range:
        """The range in a text like ``-1,1``.

        Raises:
            FeedError: it is none.
        """
        try:
            black, white = (float(part) for part in text.split(","))
        except ValueError as error:
            raise FeedError(
                f"Expected --png-range to be two numbers, the values of black and of white, got {text!r}. "
                "Write it like -1,1 or 0,1."
            ) from error
        if not np.isfinite([black, white]).all() or black == white:
            raise FeedError(f"Expected --png-range to be two different finite numbers, got {text!r}.")
        return cls(black, white)


def read_image(path: Path, spec: TensorSpec, levels: Range) -> NDArray[Any]:
    """An image as the feed of an input [1, C, H, W]: grey for one channel, RGB for three, RGBA for four.

    Raises:
        FeedError: the file is no image, or not one of the input's size and number of channels.
    """
    if len(spec.shape) != 4 or spec.shape[0] != 1 or spec.shape[1] not in _MODES or "float" not in spec.dtype:
        raise FeedError(
            f"Expected an input [1, C, H, W] of floats with 1, 3 or 4 channels for the image {path}, but {spec.name!r} "
            f"is {spec.dtype} {list(spec.shape)}. Give its values as a .npy file."
        )
    shares = _shares(path)
    channels, size = spec.shape[1], spec.shape[2:]
    if shares.shape != (*size, channels):
        raise FeedError(
            f"Expected {path} to have {size[1]}x{size[0]} pixels (width x height) of {channels} channels "
            f"({_MODES[channels]}) for input {spec.name!r}, got {shares.shape[1]}x{shares.shape[0]} of "
            f"{shares.shape[2]}. Convert or resize the image."
        )
    values = levels.black + (levels.white - levels.black) * shares
    return np.moveaxis(values, -1, 0)[None].astype(spec.dtype)


def read_mask(path: Path) -> NDArray[np.bool_]:
    """Where an image is brighter than half of white.

    Raises:
        FeedError: the file is no grey or RGB image.
    """
    return np.asarray(_shares(path)[..., :3].mean(axis=-1) > 0.5)


def write_previews(folder: Path, stem: str, array: NDArray[Any], levels: Range) -> None:
    """Writes a .png for every image of a tensor [N, 1 or 3, H, W]; of other tensors, and without Pillow, none."""
    if array.ndim != 4 or array.shape[1] not in _PREVIEW_CHANNELS or array.dtype.kind != "f" or not has_pillow():
        return
    shares = (np.asarray(array, np.float64) - levels.black) / (levels.white - levels.black)
    pixels = np.round(255 * np.clip(shares, 0, 1)).astype(np.uint8)
    for number, image in enumerate(pixels):
        name = stem if len(pixels) == 1 else f"{stem}.{number}"
        picture = np.moveaxis(image, 0, -1).squeeze(-1) if image.shape[0] == 1 else np.moveaxis(image, 0, -1)
        _pillow().fromarray(picture).save(folder / f"{name}.png")


def check_picture(path: Path) -> None:
    """Checks that a picture can be written, before time goes into making it.

    Raises:
        ResultFileError: its folder is not there, or its name does not end as those of pictures do.
    """
    pillow = _pillow()
    if not path.parent.is_dir():
        raise _unwritten(path, f"no folder {path.parent}")
    if pillow.registered_extensions().get(path.suffix.lower()) not in pillow.SAVE:
        raise _unwritten(path, f"a name that ends in {path.suffix!r}")


def write_picture(path: Path, pixels: NDArray[np.uint8]) -> None:
    """Writes an image [H, W, 3], or a grey one [H, W].

    Raises:
        ResultFileError: it cannot be written.
    """
    pillow = _pillow()
    try:
        pillow.fromarray(pixels).save(path)
    except (OSError, ValueError) as error:
        raise _unwritten(path, error) from error


def write_heat(path: Path, heat: NDArray[np.float32], shape: tuple[int, int] | None = None) -> None:
    """Writes values [H, W] between 0 and 1 as black to white, every one as a square of pixels if a shape asks for more.

    Raises:
        ResultFileError: it cannot be written.
    """
    grey = np.round(255 * np.clip(heat, 0, 1)).astype(np.uint8)
    if shape is not None:
        rows, columns = (np.arange(new) * old // new for new, old in zip(shape, heat.shape, strict=True))
        grey = grey[np.ix_(rows, columns)]
    write_picture(path, grey)


def has_pillow() -> bool:
    """Whether images can be read and written."""
    return importlib.util.find_spec("PIL") is not None


def _shares(path: Path) -> NDArray[np.float64]:
    """The image [H, W, C] as shares of white."""
    pillow = _pillow()
    try:
        with pillow.open(path) as image:
            sixteen = image.mode.startswith("I;16")
            keep = sixteen or image.mode in _MODES.values()
            pixels = np.asarray(image if keep else image.convert("L" if image.mode == "1" else "RGB"), np.float64)
    except (OSError, ValueError, SyntaxError, pillow.DecompressionBombError) as error:
        raise FeedError(f"Expected {path} to be a readable image, got: {error}. Save it as PNG again.") from error
    shares: NDArray[np.float64] = pixels / (65535.0 if sixteen else 255.0)
    return shares[..., None] if shares.ndim == 2 else shares


def _unwritten(path: Path, why: object) -> ResultFileError:
    return ResultFileError(
        f"Expected to write the picture {path}, got: {why}. Give a file like image.png in a folder that exists."
    )


def _pillow() -> ModuleType:
    if not has_pillow():
        raise EngineMissingError(
            "Expected the package pillow, to read images, but it is not installed. "
            'Install it with pip install "retouch[png]".'
        )
    return importlib.import_module("PIL.Image")
