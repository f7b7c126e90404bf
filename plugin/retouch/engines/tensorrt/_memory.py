"""The card's memory: what is allocated, by whom it is used, and how room is made."""

from __future__ import annotations

import contextlib
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Protocol

from retouch.engines.tensorrt._cuda import Cuda
from retouch.errors import DeviceMemoryError, EngineError

__all__ = ["Buffer", "DeviceMemory", "User"]

Relieve = Callable[[int], int]


class User(Protocol):
    """Something that runs, and reads values meanwhile."""

    def reads(self, value: object) -> bool:
        """Whether it reads a value."""


class Buffer:
    """Memory of the card; it is given back when nobody holds this object any more.

    Attributes:
        address: where it begins.
        size: its size in bytes.
    """

    def __init__(self, memory: DeviceMemory, address: int, size: int) -> None:
        self._memory = memory
        self.address = address
        self.size = size

    def __del__(self) -> None:
        # Nobody is there to hear of a failure, and the next call reports it again.
        with contextlib.suppress(EngineError):
            self._memory.give_back(self.address)


class DeviceMemory:
    """Allocates memory of the card, and has states moved to the host where it runs short.

    A run waits for the card before it ends, so memory that nobody holds is not in use on any stream.
    """

    def __init__(self, cuda: Cuda) -> None:
        self.cuda = cuda
        self.stream = cuda.stream()
        """For what belongs to no run: downloads, and giving memory back."""
        self._lock = threading.Lock()
        self._users: set[User] = set()
        self._relieve: weakref.WeakMethod[Relieve] | None = None
        self._moves = 0
        self._moved_bytes = 0

    @property
    def moves(self) -> int:
        """How often a value was moved to the host: where it is unchanged, all addresses are."""
        return self._moves

    def take_moved(self) -> int:
        """The size of the values that were moved to the host since this was asked last."""
        if not self._moved_bytes:
            return 0
        with self._lock:
            moved, self._moved_bytes = self._moved_bytes, 0
            return moved

    def relieved_by(self, relieve: Relieve) -> None:
        """Has a method make room; its object is not kept alive.

        Args:
            relieve: moves values until so many bytes are free or there is nothing left to move; returns how many
                it freed.
        """
        self._relieve = weakref.WeakMethod(relieve)  # the store holds values, and these the memory

    def allocate(self, size: int, stream: int) -> Buffer:
        """Fresh memory, to be used behind what is on that stream.

        Raises:
            DeviceMemoryError: there is not so much, even after values were moved to the host.
        """
        while True:
            try:
                return Buffer(self, self.cuda.allocate(size, stream), size)
            except DeviceMemoryError:
                relieve = self._relieve() if self._relieve is not None else None
                if relieve is None or relieve(size) == 0:
                    raise
                self.cuda.synchronise(self.stream)

    def give_back(self, address: int) -> None:
        """Frees memory."""
        self.cuda.free(address, self.stream)

    @contextlib.contextmanager
    def used_by(self, user: User) -> Iterator[int]:
        """Nothing that a user reads is moved meanwhile; gives the number of moves so far."""
        with self._lock:
            self._users.add(user)
            moves = self._moves
        try:
            yield moves
        finally:
            with self._lock:
                self._users.discard(user)

    def move(self, value: object, size: int, away: Callable[[], None]) -> int:
        """Moves a value unless it is read at the moment; returns the bytes that became free."""
        with self._lock:
            if any(user.reads(value) for user in self._users):
                return 0
            away()
            self._moves += 1
            self._moved_bytes += size
            return size
