"""The import of a library that builds or runs engines, made when that is done."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any

from retouch.engines._target import Target
from retouch.errors import EngineMissingError

__all__ = ["Library", "load_library"]


@dataclass(frozen=True)
class Library:
    """A library that builds and runs engines.

    Attributes:
        target: what its engines are for.
        trt: the Python module.
        version: its version.
    """

    target: Target
    trt: Any
    version: str


def load_library(target: Target) -> Library:
    """The library that builds for a target.

    Raises:
        EngineMissingError: it is not installed, does not load, or is of a major version that is not known to work.
    """
    try:
        module = importlib.import_module(target.module)
        version = str(module.__version__)
    except Exception as error:  # a library that does not load raises what it likes
        raise EngineMissingError(
            f"Expected the package {target.module} for engines of {target}, got {type(error).__name__}: {error}. "
            f"Install it with `{target.remedy}`."
        ) from error
    major = version.split(".", maxsplit=1)[0]
    if major not in map(str, target.majors):
        known = " or ".join(map(str, target.majors))
        raise EngineMissingError(
            f"Expected {target.module} of major version {known}, got {version}. Install another one with "
            f"`{target.remedy}`; ONNX Runtime's own TensorRT provider is linked to one major version as well and needs "
            "an environment with that one."
        )
    return Library(target, module, version)
