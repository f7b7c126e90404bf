"""A bundle's directory while it is being written."""

from __future__ import annotations

import os
from pathlib import Path
from types import TracebackType
from typing import ClassVar, Self

from retouch.files import Kind, StagedDirectory


class StagedWriter:
    """A context manager: fill ``path``, then call ``finish``, which subclasses have; otherwise nothing is left behind.

    The files are written into a sibling directory that takes the bundle's place at the end.
    """

    _kind: ClassVar[Kind]

    def __init__(self, target: str | os.PathLike[str]) -> None:
        self._staged = StagedDirectory(target, self._kind)

    @property
    def path(self) -> Path:
        """The directory to fill."""
        return self._staged.path

    def __enter__(self) -> Self:
        self._staged.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._staged.__exit__(kind, error, trace)
