"""Engines without weights."""

from __future__ import annotations

from retouch.engines import Library
from retouch.engines.tensorrt import card_name
from retouch.errors import BuildRequestError

__all__ = ["check_refit"]

_WRONG = "11.3"


def check_refit(library: Library) -> None:
    """Checks that engines without weights can be built here.

    Raises:
        BuildRequestError: this version of TensorRT builds wrong ones.
        EngineMissingError: there is no card, which also TensorRT-RTX needs to compile kernels for weights to come.
    """
    if library.version.startswith(f"{_WRONG}."):
        raise BuildRequestError(
            f"Expected a TensorRT other than {_WRONG} for engines without weights, got {library.version}: it may lose "
            "a bias in them, by its own release notes. Update it, or build without --refit."
        )
    card_name()
