# ruff: noqa: N802, N815  (CUDA's names)
"""CUDA's calls on host memory: what is put on a stream is done when the stream is waited for, and not before.

Reading results too early gives poison; using memory that was given back, or copying beyond it, fails.
"""

from __future__ import annotations

import ctypes
import enum
import itertools
import types
from collections.abc import Callable
from typing import Any

import numpy as np

POISON = 0xA5
Operation = Callable[[], None]


class Code(enum.IntEnum):
    cudaSuccess = 0
    cudaErrorMemoryAllocation = 2


class FakeCuda:
    """Stands in for the module ``cuda.bindings.runtime``.

    Attributes:
        calls: every call, with its arguments.
        capacity: size of the card's memory.
        card: its name.
    """

    card = b"Fake 4090\0"
    cudaStreamNonBlocking = 1
    cudaError_t = Code
    cudaMemcpyKind = enum.Enum("Kind", ["cudaMemcpyHostToDevice", "cudaMemcpyDeviceToHost", "cudaMemcpyDeviceToDevice"])
    cudaStreamCaptureMode = enum.Enum("Mode", ["cudaStreamCaptureModeThreadLocal"])
    cudaMemPoolAttr = enum.Enum("Attribute", ["cudaMemPoolAttrReleaseThreshold"])

    def __init__(self, capacity: int = 1 << 30) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.capacity = capacity
        self.blocks: dict[int, np.ndarray] = {}
        self.others: dict[int, np.ndarray] = {}
        self.queues: dict[int, list[Operation]] = {}
        self.captures: dict[int, list[Operation]] = {}
        self._numbers = itertools.count(1)

    @property
    def used(self) -> int:
        return sum(block.nbytes for block in self.blocks.values())

    def names(self) -> list[str]:
        return [call[0] for call in self.calls]

    def holds(self, array: np.ndarray) -> np.ndarray:
        """The array, as if another library had it in the card's memory."""
        self.others[array.ctypes.data] = array.reshape(-1).view(np.uint8)
        return array

    def put(self, stream: int, operation: Operation) -> None:
        """What the card is to do on a stream, or what a capture is to note down."""
        (self.captures if stream in self.captures else self.queues)[stream].append(operation)

    def view(self, address: int, size: int) -> np.ndarray:
        """So many bytes of live memory."""
        for start, block in (*self.blocks.items(), *self.others.items()):
            if start <= address and address + size <= start + block.nbytes:
                return block[address - start : address - start + size]
        raise AssertionError(f"{size} bytes at {address} are not memory that is in use")

    def cudaGetDeviceCount(self) -> tuple[Any, ...]:
        return Code.cudaSuccess, 1

    def cudaGetDeviceProperties(self, _device: int) -> tuple[Any, ...]:
        return Code.cudaSuccess, types.SimpleNamespace(name=self.card, major=8, minor=9)

    def cudaGetErrorString(self, error: int) -> tuple[Any, ...]:
        return Code.cudaSuccess, b"error %d" % int(error)

    def cudaGetLastError(self) -> tuple[Any, ...]:
        return (Code.cudaSuccess,)

    def cudaMemGetInfo(self) -> tuple[Any, ...]:
        return Code.cudaSuccess, self.capacity - self.used, self.capacity

    def cudaDeviceGetDefaultMemPool(self, _device: int) -> tuple[Any, ...]:
        return Code.cudaSuccess, "pool"

    def cudaMemPoolSetAttribute(self, pool: str, _attribute: Any, value: Any) -> tuple[Any, ...]:
        self.calls.append(("cudaMemPoolSetAttribute", pool, value))
        return (Code.cudaSuccess,)

    def cudaStreamCreateWithFlags(self, flags: int) -> tuple[Any, ...]:
        stream = next(self._numbers)
        self.queues[stream] = []
        self.calls.append(("cudaStreamCreateWithFlags", flags))
        return Code.cudaSuccess, stream

    def cudaStreamDestroy(self, stream: int) -> tuple[Any, ...]:
        assert not self.queues.pop(stream), "a stream was given back before it was waited for"
        return (Code.cudaSuccess,)

    def cudaStreamSynchronize(self, stream: int) -> tuple[Any, ...]:
        assert stream not in self.captures, "a stream was waited for while it was captured"
        self.calls.append(("cudaStreamSynchronize", stream))
        while self.queues[stream]:
            self.queues[stream].pop(0)()
        return (Code.cudaSuccess,)

    def cudaMallocAsync(self, size: int, stream: int) -> tuple[Any, ...]:
        assert stream not in self.captures, "memory was asked for while a stream was captured"
        self.calls.append(("cudaMallocAsync", size, stream))
        if self.used + size > self.capacity:
            return Code.cudaErrorMemoryAllocation, None
        block = np.full(size, POISON, np.uint8)
        self.blocks[block.ctypes.data] = block
        return Code.cudaSuccess, block.ctypes.data

    def cudaFreeAsync(self, address: int, stream: int) -> tuple[Any, ...]:
        self.calls.append(("cudaFreeAsync", address, stream))
        if self.queues[stream]:
            self.queues[stream].append(lambda: self._free(address))
        else:
            self._free(address)
        return (Code.cudaSuccess,)

    def cudaMemcpyAsync(self, target: int, source: int, size: int, kind: Any, stream: int) -> tuple[Any, ...]:
        self.calls.append(("cudaMemcpyAsync", kind.name.removeprefix("cudaMemcpy"), size, stream))
        if kind is self.cudaMemcpyKind.cudaMemcpyHostToDevice:
            # What lies in pageable memory is taken at once.
            taken = np.frombuffer(ctypes.string_at(source, size), np.uint8)
            self.put(stream, lambda: self._write(target, taken))
        elif kind is self.cudaMemcpyKind.cudaMemcpyDeviceToHost:
            self.put(stream, lambda: ctypes.memmove(target, self.view(source, size).ctypes.data, size) and None)
        else:
            self.put(stream, lambda: self._write(target, self.view(source, size)))
        return (Code.cudaSuccess,)

    def cudaStreamBeginCapture(self, stream: int, _mode: Any) -> tuple[Any, ...]:
        self.calls.append(("cudaStreamBeginCapture", stream))
        self.captures[stream] = []
        return (Code.cudaSuccess,)

    def cudaStreamEndCapture(self, stream: int) -> tuple[Any, ...]:
        self.calls.append(("cudaStreamEndCapture", stream))
        return Code.cudaSuccess, self.captures.pop(stream)

    def cudaGraphInstantiate(self, graph: list[Operation], _flags: int) -> tuple[Any, ...]:
        return Code.cudaSuccess, tuple(graph)

    def cudaGraphDestroy(self, _graph: list[Operation]) -> tuple[Any, ...]:
        return (Code.cudaSuccess,)

    def cudaGraphLaunch(self, graph: tuple[Operation, ...], stream: int) -> tuple[Any, ...]:
        self.calls.append(("cudaGraphLaunch", stream))
        self.queues[stream].extend(graph)
        return (Code.cudaSuccess,)

    def cudaGraphExecDestroy(self, _graph: Any) -> tuple[Any, ...]:
        self.calls.append(("cudaGraphExecDestroy",))
        return (Code.cudaSuccess,)

    def _free(self, address: int) -> None:
        self.blocks.pop(address).fill(POISON)

    def _write(self, target: int, contents: np.ndarray) -> None:
        self.view(target, contents.nbytes)[...] = contents


def driver() -> Any:
    """What stands in for the module ``cuda.bindings.driver``."""
    return types.SimpleNamespace(cuuint64_t=int)
