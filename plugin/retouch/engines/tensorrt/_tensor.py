"""A tensor in the card's memory, or on its way there or back."""

from __future__ import annotations

import hashlib
import threading
import weakref
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retouch.engines.tensorrt._dlpack import as_capsule
from retouch.engines.tensorrt._memory import Buffer, DeviceMemory

__all__ = ["DeviceTensor"]

_SMALL = 1 << 20
"""Up to so many bytes stay in host memory too once they were there: feeds and outputs are compared on the host."""


class DeviceTensor:
    """A value of an engine on a card.

    It lies on the card, on the host, or on both. What came from the host goes to the card when a run first reads it.
    """

    def __init__(
        self,
        memory: DeviceMemory,
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        *,
        host: NDArray[Any] | None = None,
        buffer: Buffer | None = None,
    ) -> None:
        """Holds an array, or memory of the card with the contents."""
        self._memory = memory
        self.shape = shape
        self._dtype = dtype
        self._host = host
        self._buffer = buffer
        self._lock = threading.Lock()
        self._seen: weakref.ref[NDArray[Any]] | None = None

    @classmethod
    def from_numpy(cls, memory: DeviceMemory, array: NDArray[Any]) -> DeviceTensor:
        """The array as a value, which shares its memory until a run reads it."""
        contiguous = np.asarray(array, order="C").view()
        contiguous.flags.writeable = False
        return cls(memory, contiguous.shape, contiguous.dtype, host=contiguous)

    @classmethod
    def copy_of(cls, memory: DeviceMemory, other: DeviceTensor, stream: int) -> DeviceTensor:
        """A copy of a value in the card's memory, once the stream has come to it."""
        buffer = memory.allocate(other.nbytes, stream)
        other.copy_to(buffer.address, stream)
        return cls(memory, other.shape, other.numpy_dtype, buffer=buffer)

    def lies_in(self, memory: DeviceMemory) -> bool:
        """Whether it belongs to that memory, which one engine has."""
        return self._memory is memory

    @property
    def numpy_dtype(self) -> np.dtype[Any]:
        """The numpy dtype."""
        return self._dtype

    @property
    def dtype(self) -> str:
        """The numpy dtype's name."""
        return str(self._dtype)

    @property
    def nbytes(self) -> int:
        """The size of the contents."""
        return int(np.prod(self.shape, dtype=np.int64)) * self._dtype.itemsize

    @property
    def on_device(self) -> bool:
        """Whether the contents are in the card's memory."""
        return self._buffer is not None

    @cached_property
    def digest(self) -> str:
        """A digest of dtype, shape and contents."""
        digest = hashlib.blake2b(f"{self.dtype}{self.shape}".encode(), digest_size=16)
        digest.update(np.ascontiguousarray(self.numpy()).data)
        return digest.hexdigest()

    def numpy(self) -> NDArray[Any]:
        """The contents as a read-only array: the one on the host if there is one, else a copy of what the card has."""
        with self._lock:
            known = self._host if self._host is not None else self._seen() if self._seen is not None else None
            if known is not None:
                return known
            array = self._downloaded()
            if self.nbytes <= _SMALL:
                self._host = array
            else:
                self._seen = weakref.ref(array)
            return array

    def buffer(self, stream: int) -> Buffer:
        """The card's memory with the contents, which are uploaded if they are not there yet.

        Raises:
            DeviceMemoryError: there is no room for them.
        """
        with self._lock:
            if self._buffer is None:
                assert self._host is not None
                buffer = self._memory.allocate(self.nbytes, stream)
                self._memory.cuda.upload(buffer.address, self._host, stream)
                self._memory.cuda.synchronise(stream)
                self._buffer = buffer
                if self.nbytes > _SMALL:
                    self._host = None
            return self._buffer

    def copy_to(self, address: int, stream: int) -> None:
        """Puts the contents elsewhere in the card's memory."""
        with self._lock:
            if self._buffer is not None:
                self._memory.cuda.copy(address, self._buffer.address, self.nbytes, stream)
            else:
                assert self._host is not None
                self._memory.cuda.upload(address, self._host, stream)

    def fill(self, source: int, stream: int) -> None:
        """Takes its contents from elsewhere in the card's memory, once."""
        self._buffer = self._memory.allocate(self.nbytes, stream)
        self._memory.cuda.copy(self._buffer.address, source, self.nbytes, stream)

    def move_to_host(self) -> int:
        """Frees the card's memory, unless a run reads it; returns how many bytes became free.

        The contents go back to the card when a run reads them again.
        """
        if not self._lock.acquire(blocking=False):
            return 0
        try:
            return 0 if self._buffer is None else self._memory.move(self, self.nbytes, self._move)
        finally:
            self._lock.release()

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._memory.cuda.memory_kind, 0

    def __dlpack__(self, *, stream: int | None = None, **_options: object) -> object:
        """The contents for other libraries, which do not change them."""
        del stream  # a run has waited for the card before its outputs are handed out
        buffer = self.buffer(self._memory.stream)
        return as_capsule(buffer.address, self.shape, self._dtype, self.__dlpack_device__(), buffer)

    def _move(self) -> None:
        if self._host is None:
            self._host = self._downloaded()
        self._buffer = None

    def _downloaded(self) -> NDArray[Any]:
        assert self._buffer is not None
        array = np.empty(self.shape, self._dtype)
        self._memory.cuda.download(array, self._buffer.address, self._memory.stream)
        array.flags.writeable = False
        return array
