"""Polygraphy: whether it is there, and without its log."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version

from retouch.errors import EngineMissingError, VerificationError

_OLDEST = (0, 53, 6)
"""Earlier ones have neither comparisons that can be saved nor several of them at once."""


def require_polygraphy() -> None:
    """Checks that Polygraphy can be used.

    Raises:
        EngineMissingError: it is not installed, or too old.
    """
    wanted = ".".join(map(str, _OLDEST))
    try:
        found = version("polygraphy")
    except PackageNotFoundError as error:
        raise EngineMissingError(
            f"Validation needs Polygraphy {wanted} or later, which is not installed: "
            'pip install "retouch[validate]" (or "polygraphy>=' + wanted + '").'
        ) from error
    if tuple(int(part) for part in found.split(".")[:3] if part.isdigit()) < _OLDEST:
        raise EngineMissingError(
            f'Validation needs Polygraphy {wanted} or later, got {found}: pip install --upgrade "polygraphy>={wanted}".'
        )


@contextmanager
def quiet_polygraphy() -> Iterator[None]:
    """Keeps Polygraphy's log to what ends a run, and turns that into an error of ours.

    Raises:
        VerificationError: Polygraphy gave up.
    """
    from polygraphy.exception import PolygraphyException
    from polygraphy.logger import G_LOGGER

    try:
        with G_LOGGER.verbosity(G_LOGGER.CRITICAL):
            yield
    except PolygraphyException as error:
        raise VerificationError(f"Polygraphy stopped: {error}") from error
