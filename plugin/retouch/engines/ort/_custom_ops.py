"""Retouch's CUDA kernels as custom operators of ONNX Runtime, for models that were built with them."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

from retouch.errors import EngineMissingError

__all__ = ["CUSTOM_OPS", "custom_ops_library"]

CUSTOM_OPS = "RETOUCH_ORT_OPS"
"""The variable of the environment that names the library."""

_INTERFACE = 3
"""Which attributes and operands the operators have; the library says it too."""
_REMEDY = f"Build it with `make ort-ops`, and set {CUSTOM_OPS}, or build models without plugins"


def custom_ops_library() -> Path:
    """The library of the operators.

    Raises:
        EngineMissingError: it is not named, is not there, does not load, or has another interface.
    """
    path = os.environ.get(CUSTOM_OPS)
    if not path or not Path(path).is_file():
        raise EngineMissingError(
            f"Expected {CUSTOM_OPS} to name Retouch's operators for ONNX Runtime, got {path or 'nothing'}. {_REMEDY}."
        )
    try:
        described = ctypes.CDLL(path).retouch_ort_describe
    except (OSError, AttributeError) as error:
        raise EngineMissingError(
            f"Expected {path} to be Retouch's operators for ONNX Runtime, got: {error}. {_REMEDY}."
        ) from error
    if described() != _INTERFACE:
        raise EngineMissingError(
            f"Expected {path} to have operators of interface {_INTERFACE}, got {described()}. {_REMEDY}."
        )
    return Path(path)
