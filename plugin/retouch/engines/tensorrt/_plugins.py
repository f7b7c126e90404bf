"""Retouch's plugins for engines that were built with them."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path
from typing import Any

from retouch.engines._library import Library
from retouch.engines._target import Target
from retouch.errors import EngineMissingError

__all__ = ["PLUGIN_LIBRARY", "load_plugins", "plugin_library"]

PLUGIN_LIBRARY = "RETOUCH_TRT_PLUGINS"
"""The variable of the environment that names the library."""

_INTERFACE = 3
"""Which attributes and operands the plugins have; the library says it too."""
_REMEDY = "Build it with `make plugins` against the headers of the installed TensorRT"


def plugin_library(library: Library) -> Path:
    """The library of Retouch's plugins, if it was compiled for the installed TensorRT.

    Raises:
        EngineMissingError: it is not named, is not there, does not load, or was compiled for another major version.
    """
    if library.target is not Target.TENSORRT:
        raise EngineMissingError(f"{library.target} takes no plugins: build engines for it without them.")
    path = os.environ.get(PLUGIN_LIBRARY)
    if not path or not Path(path).is_file():
        raise EngineMissingError(
            f"Expected {PLUGIN_LIBRARY} to name Retouch's plugin library, got {path or 'nothing'}. {_REMEDY}, and set "
            f"{PLUGIN_LIBRARY}, or build engines without plugins."
        )
    _check(Path(path), int(library.version.split(".", maxsplit=1)[0]))
    return Path(path)


def load_plugins(library: Library, runtime: Any) -> None:  # noqa: ANN401  (of an optional library)
    """Has TensorRT know the plugins, for engines that need them.

    Raises:
        EngineMissingError: the library is missing, or was compiled for another TensorRT.
    """
    path = plugin_library(library)
    registry = runtime.get_plugin_registry()
    if registry.load_library(str(path)) is None:
        raise EngineMissingError(f"Expected TensorRT {library.version} to load {path}, but it does not. {_REMEDY}.")


def _check(path: Path, major: int) -> None:
    """The library says what it was compiled for; TensorRT would crash over one of another version."""
    try:
        described = ctypes.CDLL(str(path)).retouch_trt_describe
    except (OSError, AttributeError) as error:
        raise EngineMissingError(f"Expected {path} to be Retouch's plugin library, got: {error}. {_REMEDY}.") from error
    compiled, interface = ctypes.c_int32(), ctypes.c_int32()
    described(ctypes.byref(compiled), ctypes.byref(interface))
    if (compiled.value, interface.value) != (major, _INTERFACE):
        raise EngineMissingError(
            f"Expected {path} to be compiled for TensorRT {major} with plugins of interface {_INTERFACE}, got TensorRT "
            f"{compiled.value} and interface {interface.value}. {_REMEDY}."
        )
