"""A directory, replaced in one step."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from retouch.errors import RetouchError
from retouch.files._claim import Claim, remove_abandoned

_SHOWN = 3


@dataclass(frozen=True)
class Kind:
    """What a directory holds.

    Attributes:
        name: what to call it in messages, with its article.
        recognise: whether a directory with entries of these names is one, and holds nothing that would be missed.
        error: the error to raise.
        foreign: the files in a recognised directory that are not its own, by their paths in it.
    """

    name: str
    recognise: Callable[[AbstractSet[str]], bool]
    error: type[RetouchError]
    foreign: Callable[[Path], Sequence[str]] = lambda _: ()

    @property
    def noun(self) -> str:
        """The name without its article."""
        return self.name.partition(" ")[2]


class StagedDirectory:
    """A context manager: fill ``path``, then call ``finish``; otherwise nothing is left behind.

    The files are written into a sibling directory that takes the target's place at the end. A target that exists and is
    not of the same kind is not replaced.
    """

    def __init__(self, target: str | os.PathLike[str], kind: Kind) -> None:
        self.target = Path(target).resolve()  # a link keeps pointing at its place, and the sibling lies on that disk
        self._kind = kind
        self._claim: Claim | None = None
        self._new_parents: list[Path] = []

    @property
    def path(self) -> Path:
        """The directory to fill."""
        if self._claim is None:
            raise self._kind.error(f"The {self._kind.noun} writer is not open. Use it in a with statement.")
        return self._claim.path

    def __enter__(self) -> Self:
        self.check_replaceable()
        parent = self.target.parent
        self._new_parents = [folder for folder in (parent, *parent.parents) if not folder.exists()]
        try:
            remove_abandoned(parent)
            self._claim = Claim(parent)
        except OSError as error:
            self._remove_parents()
            raise self._kind.error(
                f"The {self._kind.noun} cannot be written to {self.target}: {error}. Choose another path."
            ) from error
        return self

    def finish(self) -> None:
        """Puts the directory in place.

        Raises:
            RetouchError: something else has taken the place.
        """
        self.check_replaceable()
        _move_into_place(self.path, self.target)
        self._release()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._claim is not None:
            self._discard()
        if isinstance(error, OSError):
            raise self._kind.error(
                f"Writing the {self._kind.noun} {self.target} failed: {error}. Nothing was changed."
            ) from error

    def _discard(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)
        self._release()
        self._remove_parents()

    def _release(self) -> None:
        claim, self._claim = self._claim, None
        if claim is not None:
            claim.release()

    def _remove_parents(self) -> None:
        for folder in self._new_parents:
            with contextlib.suppress(OSError):  # somebody else uses it by now
                folder.rmdir()

    def check_replaceable(self) -> None:
        """Refuses to replace what is of another kind: a result must not delete somebody's folder.

        Raises:
            RetouchError: something else is there.
        """
        path = self.target
        if not path.exists():
            return
        names = {entry.name for entry in path.iterdir()} if path.is_dir() else {path.name}
        if names and not (path.is_dir() and self._kind.recognise(names)):
            raise self._kind.error(
                f"{path} exists and is not {self._kind.name}; it is not replaced. Choose another path, or remove it "
                "first."
            )
        others = sorted(self._kind.foreign(path)) if names else []
        if others:
            shown = ", ".join(others[:_SHOWN]) + (", ..." if len(others) > _SHOWN else "")
            raise self._kind.error(
                f"{path} holds {shown} beside {self._kind.name}; it is not replaced. Move what is yours elsewhere, or "
                "choose another path."
            )


def _move_into_place(new: Path, target: Path) -> None:
    """Puts ``new`` where ``target`` is; if that fails, the old one comes back."""
    if not target.exists():
        new.rename(target)
        return
    old = new.with_suffix(".old")
    target.rename(old)
    try:
        new.rename(target)
    except BaseException:
        old.rename(target)
        raise
    shutil.rmtree(old, ignore_errors=True)
