"""What TensorRT measured in earlier builds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from retouch.errors import BuildRequestError
from retouch.files import replace_bytes

__all__ = ["keep_timing_cache", "use_timing_cache"]


def use_timing_cache(config: Any, path: Path) -> None:  # noqa: ANN401  (of an optional library)
    """Has a builder use what the file holds; a file that is not there yet is an empty one.

    Raises:
        BuildRequestError: the file cannot be read, or is of another TensorRT or card.
    """
    try:
        contents = path.read_bytes() if path.exists() else b""
    except OSError as error:
        raise BuildRequestError(f"Expected {path} to be a timing cache, got: {error}.") from error
    cache = config.create_timing_cache(contents)
    if cache is None or not config.set_timing_cache(cache, False):
        raise BuildRequestError(
            f"Expected {path} to be a timing cache of this TensorRT and this card, but it does not take it. Name "
            "another file, or delete it."
        )


def keep_timing_cache(config: Any, path: Path) -> None:  # noqa: ANN401
    """Writes what is known now into the file.

    Raises:
        BuildRequestError: it cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_bytes(path, memoryview(config.get_timing_cache().serialize()))
    except OSError as error:
        raise BuildRequestError(f"The timing cache {path} cannot be written: {error}.") from error
