"""The calls of CUDA's runtime that the engine makes, by NVIDIA's own Python bindings."""

from __future__ import annotations

import importlib
from typing import Any

from numpy.typing import NDArray

from retouch.engines.tensorrt._dlpack import CUDA_DEVICE
from retouch.errors import DeviceMemoryError, EngineError, EngineMissingError

__all__ = ["Cuda", "card_name"]

_RUNTIME = "cuda.bindings.runtime"
_DRIVER = "cuda.bindings.driver"
_EVERYTHING = 2**64 - 1
_DEVICE = 0
"""The first card that the process sees: CUDA_VISIBLE_DEVICES chooses."""
_REMEDY = 'Install it with `pip install "retouch[trt]"`.'


class Cuda:
    """One card. Every call that fails is an error that says which call it was and what CUDA says."""

    memory_kind = CUDA_DEVICE
    """DLPack's number for this kind of memory."""

    def __init__(self) -> None:
        """Looks for the first card that the process sees, and has freed memory stay with the process.

        Raises:
            EngineMissingError: the bindings are not installed, or there is no card.
        """
        self._runtime: Any = _load(_RUNTIME)
        self.name = "the first card"
        error, count = self._runtime.cudaGetDeviceCount()
        if int(error) != 0 or count == 0:
            found = "none" if int(error) == 0 else self._text(error)
            raise EngineMissingError(
                f"Expected an NVIDIA GPU with its driver to run engines, got: {found}. Engines for TensorRT-RTX are "
                "built on machines without one, and run on machines that have it; ONNX Runtime runs bundles on both."
            )
        properties = self._check("cudaGetDeviceProperties", _DEVICE)
        self.name = _decoded(properties.name)
        self.capability = f"{properties.major}.{properties.minor}"
        self._keep_freed_memory()

    def stream(self) -> int:
        """A new stream that does not wait for the default one."""
        return int(self._check("cudaStreamCreateWithFlags", self._runtime.cudaStreamNonBlocking))

    def destroy(self, stream: int) -> None:
        """Gives a stream back."""
        self._check("cudaStreamDestroy", stream)

    def synchronise(self, stream: int) -> None:
        """Waits for everything that was put on a stream."""
        self._check("cudaStreamSynchronize", stream)

    def allocate(self, size: int, stream: int) -> int:
        """The address of fresh memory, to be used behind what is on that stream.

        Raises:
            DeviceMemoryError: there is not so much.
        """
        error, address = self._runtime.cudaMallocAsync(max(size, 1), stream)
        if int(error) == int(self._runtime.cudaError_t.cudaErrorMemoryAllocation):
            self._runtime.cudaGetLastError()  # or the next call would report it again
            free, total = self._check("cudaMemGetInfo")
            raise DeviceMemoryError(
                f"Expected {size / 2**20:.1f} MiB of the memory of {self.name}, of which {free / 2**20:.0f} of "
                f"{total / 2**20:.0f} MiB are free. Drop runs, or give the session a store with a smaller budget."
            )
        self._raise(error, "cudaMallocAsync")
        return int(address)

    def free(self, address: int, stream: int) -> None:
        """Gives memory back that nothing on other streams uses any more."""
        self._check("cudaFreeAsync", address, stream)

    def upload(self, target: int, array: NDArray[Any], stream: int) -> None:
        """Copies a contiguous array into the card's memory."""
        self._copy(target, array.ctypes.data, array.nbytes, "cudaMemcpyHostToDevice", stream)

    def download(self, array: NDArray[Any], source: int, stream: int) -> None:
        """Copies from the card's memory into a contiguous array, and waits for it."""
        self._copy(array.ctypes.data, source, array.nbytes, "cudaMemcpyDeviceToHost", stream)
        self.synchronise(stream)

    def copy(self, target: int, source: int, size: int, stream: int) -> None:
        """Copies within the card's memory."""
        self._copy(target, source, size, "cudaMemcpyDeviceToDevice", stream)

    def begin_capture(self, stream: int) -> None:
        """What this thread puts on the stream from now on is noted down instead of done."""
        mode = self._runtime.cudaStreamCaptureMode.cudaStreamCaptureModeThreadLocal
        self._check("cudaStreamBeginCapture", stream, mode)

    def end_capture(self, stream: int) -> Any:  # noqa: ANN401  (a handle of an optional library)
        """What was noted down, ready to be launched."""
        graph = self._check("cudaStreamEndCapture", stream)
        try:
            return self._check("cudaGraphInstantiate", graph, 0)
        finally:
            self._check("cudaGraphDestroy", graph)

    def launch(self, graph: Any, stream: int) -> None:  # noqa: ANN401
        """Does what was noted down."""
        self._check("cudaGraphLaunch", graph, stream)

    def forget(self, graph: Any) -> None:  # noqa: ANN401
        """Gives a captured graph back."""
        self._check("cudaGraphExecDestroy", graph)

    def _copy(self, target: int, source: int, size: int, kind: str, stream: int) -> None:
        if size:
            self._check("cudaMemcpyAsync", target, source, size, getattr(self._runtime.cudaMemcpyKind, kind), stream)

    def _keep_freed_memory(self) -> None:
        """Else every synchronisation would hand freed memory back to the system, to be asked for again."""
        pool = self._check("cudaDeviceGetDefaultMemPool", _DEVICE)
        attribute = self._runtime.cudaMemPoolAttr.cudaMemPoolAttrReleaseThreshold
        self._check("cudaMemPoolSetAttribute", pool, attribute, _load(_DRIVER).cuuint64_t(_EVERYTHING))

    def _check(self, call: str, *arguments: object) -> Any:  # noqa: ANN401
        error, *values = getattr(self._runtime, call)(*arguments)
        self._raise(error, call)
        return values[0] if len(values) == 1 else values

    def _raise(self, error: Any, call: str) -> None:  # noqa: ANN401
        if int(error) != 0:
            raise EngineError(
                f"CUDA failed in {call} on {self.name} ({self._text(error)}). If it goes on, restart the process: some "
                "errors leave a card that takes no more work from it."
            )

    def _text(self, error: Any) -> str:  # noqa: ANN401
        _, text = self._runtime.cudaGetErrorString(error)
        return _decoded(text)


def card_name() -> str:
    """The name of the first card that the process sees.

    Raises:
        EngineMissingError: CUDA's bindings are not installed, or there is no card.
    """
    return Cuda().name


def _decoded(text: bytes | str) -> str:
    return text.decode().rstrip("\0") if isinstance(text, bytes) else text


def _load(name: str) -> Any:  # noqa: ANN401
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise EngineMissingError(
            f"Expected the package cuda-bindings to run engines on a GPU, got: {error}. {_REMEDY}"
        ) from error
