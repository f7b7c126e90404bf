"""Tensors of a checkpoint by name, read when they are asked for."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

from retouch.errors import ModelError

__all__ = ["Checkpoint"]

_SINGLE = "model.safetensors"
_INDEX = "model.safetensors.index.json"


class Checkpoint:
    """The safetensors files of a directory: one, or several and an index."""

    def __init__(self, folder: Path) -> None:
        """Finds out which file holds what.

        Raises:
            ModelError: there are no weights.
        """
        self._folder = folder
        if (folder / _INDEX).is_file():
            self._files: dict[str, str] = json.loads((folder / _INDEX).read_text(encoding="utf-8"))["weight_map"]
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
