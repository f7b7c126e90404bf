"""Arrays of any dtype in safetensors and .npy files."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from retouch.errors import RunFileError

_ALIGNMENT = 64
_LONGEST_NAME = 80


class FileNames:
    """Gives tensors file names: readable, safe on every file system, and no two alike."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def unique(self, name: str) -> str:
        """A file name, without its ending, for a tensor of that name."""
        stem = re.sub(r"[^A-Za-z0-9_-]+", "_", name)[:_LONGEST_NAME] or "_"
        chosen, number = stem, 1
        while chosen.lower() in self._taken:  # some file systems do not tell upper case from lower case
            number += 1
            chosen = f"{stem}-{number}"
        self._taken.add(chosen.lower())
        return chosen


def write_arrays(path: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Writes arrays into one safetensors file.

    Raises:
        OSError: it cannot be written.
    """
    path.touch()
    permissions = path.stat().st_mode
    try:
        save_file({name: _bits(array) for name, array in arrays.items()}, path)
    except SafetensorError as error:  # which is how it reports a full disk
        raise OSError(str(error)) from error
    path.chmod(permissions)  # the file is one of its own, which only its owner could read


def write_array(path: Path, array: NDArray[Any]) -> None:
    """Writes one array into a .npy file.

    Raises:
        OSError: it cannot be written.
    """
    np.save(path, _bits(array), allow_pickle=False)


def read_arrays(source: Path | Mapping[str, Path], dtypes: Mapping[str, str]) -> dict[str, NDArray[Any]]:
    """The arrays of one safetensors file, or of one .npy file each, with the dtypes that are expected of them.

    Raises:
        RunFileError: an array is not expected, or is stored with another dtype.
    """
    arrays = {}
    for name, stored in _safetensors(source) if isinstance(source, Path) else _npy_files(source):
        if name not in dtypes:
            raise RunFileError(
                f"Expected arrays among {', '.join(dtypes)}, got {name!r} in {source}. Make the run again."
            )
        arrays[name] = _restored(name, stored, np.dtype(dtypes[name]))
    return arrays


def _safetensors(path: Path) -> Iterator[tuple[str, NDArray[Any]]]:
    try:
        with safe_open(path, "numpy") as file:
            for name in file.keys():  # noqa: SIM118 (not a mapping)
                yield name, file.get_tensor(name)
    except (SafetensorError, OSError) as error:
        raise RunFileError(f"Expected {path} to be a safetensors file, got: {error}. Make the run again.") from error


def _npy_files(files: Mapping[str, Path]) -> Iterator[tuple[str, NDArray[Any]]]:
    for name, path in files.items():
        try:
            yield name, np.load(path, allow_pickle=False)
        except (OSError, ValueError) as error:
            raise RunFileError(f"Expected {path} to be a .npy file, got: {error}. Make the run again.") from error


def _is_native(dtype: np.dtype[Any]) -> bool:
    return dtype.kind in "biufc" and dtype.isbuiltin == 1


def _bits(array: NDArray[Any]) -> NDArray[Any]:
    """The array as both file formats know it: types like bfloat16 and int4 as unsigned numbers of the same bits."""
    contiguous = np.asarray(array, order="C")
    return contiguous if _is_native(array.dtype) else contiguous.view(_unsigned(array.dtype))


def _unsigned(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return np.dtype(f"u{dtype.itemsize}")


def _restored(name: str, stored: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    written_as = dtype if _is_native(dtype) else _unsigned(dtype)
    if stored.dtype != written_as:
        raise RunFileError(
            f"Expected {name!r} to be stored as {written_as}, got {stored.dtype}. Make the run again with this bundle."
        )
    return _aligned(stored).view(dtype)


def _aligned(array: NDArray[Any]) -> NDArray[Any]:
    """A copy, aligned as engines align their own memory.

    A kernel may sum unaligned numbers in another order, and edits of a loaded run shall be the live run's bit for bit.
    """
    raw = np.empty(array.nbytes + _ALIGNMENT, np.uint8)
    offset = -raw.ctypes.data % _ALIGNMENT
    copy: NDArray[Any] = raw[offset : offset + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy
