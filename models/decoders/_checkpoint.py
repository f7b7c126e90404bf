"""Tensors of a checkpoint by name, read when they are asked for."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

from retouch.errors import ModelError
from retouch.models._load import read_json

__all__ = ["Checkpoint"]

_SINGLE = "model.safetensors"
_INDEX = "model.safetensors.index.json"


class Checkpoint:
    """The safetensors files of a directory: one, or several and an index."""

    def __init__(self, folder: Path) -> None:
        """Finds out which file holds what.

        Raises:
            ModelError: there are no weights, or they cannot be read.
        """
        self._folder = folder
        if (folder / _INDEX).is_file():
            self._files = _weight_map(folder / _INDEX)
        elif (folder / _SINGLE).is_file():
            self._files = dict.fromkeys(self._names(_SINGLE), _SINGLE)
        else:
            raise ModelError(f"{folder} holds neither {_SINGLE} nor {_INDEX}. Save the model again.")

    def stacked(self, names: Sequence[str]) -> NDArray[Any]:
        """Tensors one below the other.

        Raises:
            ModelError: one is not there, or its file cannot be read.
        """
        parts = [self._tensor(name) for name in names]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _tensor(self, name: str) -> NDArray[Any]:
        if name not in self._files:
            raise ModelError(f"{self._folder} has no tensor {name}, which its configuration asks for. Save it again.")
        try:
            with safe_open(self._folder / self._files[name], "numpy") as file:
                tensor: NDArray[Any] = file.get_tensor(name)
                return tensor
        except (OSError, SafetensorError) as error:
            raise ModelError(f"{self._files[name]} cannot be read ({error}). Copy the model again.") from error

    def _names(self, file: str) -> list[str]:
        try:
            with safe_open(self._folder / file, "numpy") as opened:
                return list(opened.keys())
        except (OSError, SafetensorError) as error:
            raise ModelError(f"{file} cannot be read ({error}). Copy the model again.") from error


def _weight_map(index: Path) -> dict[str, str]:
    """The file of every tensor, by its name."""
    found = read_json(index).get("weight_map")
    if not isinstance(found, dict) or not all(isinstance(file, str) for file in found.values()):
        raise ModelError(f"Expected weight_map in {index} to name the file of every tensor. Save the model again.")
    return found
