"""CuPy's way to a GPU, where there is no PyTorch: kernels are checked, and timed against copies and products."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from retouch.errors import EngineMissingError
from retouch.trt_plugins._card import BURST, REPEATS, WARM_UP, Buffer, Card, TorchCard, burst

__all__ = ["CupyCard", "find_card"]


class CupyCard:
    """The first CUDA card, by CuPy."""

    def __init__(self) -> None:
        """Looks for it.

        Raises:
            EngineMissingError: CuPy is not installed, or sees no card.
        """
        try:
            self._cupy: Any = importlib.import_module("cupy")
            count = int(self._cupy.cuda.runtime.getDeviceCount())
        except Exception as error:  # a library that does not load, or finds no driver, raises what it likes
            raise EngineMissingError(
                f"Expected cupy to reach a GPU, got {type(error).__name__}: {error}. Install cupy-cuda13x and the "
                "driver."
            ) from error
        if count == 0:
            raise EngineMissingError("Expected a CUDA card, but this cupy sees none.")

    @property
    def name(self) -> str:
        """The card, its compute capability, and the versions of CUDA and CuPy."""
        runtime = self._cupy.cuda.runtime
        found = runtime.getDeviceProperties(0)
        name = found["name"].decode() if isinstance(found["name"], bytes) else found["name"]
        version = f"CUDA {runtime.runtimeGetVersion()}, cupy {self._cupy.__version__}"
        return f"{name} ({found['major']}.{found['minor']}), {version}"

    @property
    def stream(self) -> int:
        """CuPy's current stream."""
        return int(self._cupy.cuda.get_current_stream().ptr)

    def upload(self, array: NDArray[Any]) -> Buffer:
        """A copy of an array in the card's memory."""
        held = self._cupy.asarray(np.ascontiguousarray(array).reshape(-1).view(np.uint8))
        return Buffer(int(held.data.ptr), held)

    def download(self, buffer: Buffer, like: NDArray[Any]) -> NDArray[Any]:
        """The contents of a buffer, with the dtype and shape of an array."""
        contents: NDArray[Any] = self._cupy.asnumpy(buffer.owner).view(like.dtype).reshape(like.shape)
        return contents

    def milliseconds(self, run: Callable[[], None]) -> float:
        """The median time between two events around what a function starts."""
        cuda, times = self._cupy.cuda, []
        for _ in range(WARM_UP):
            run()
        for _ in range(REPEATS):
            start, stop = cuda.Event(), cuda.Event()
            start.record()
            run()
            stop.record()
            stop.synchronize()
            times.append(float(cuda.get_elapsed_time(start, stop)))
        return float(np.median(times))

    def burst_milliseconds(self, run: Callable[[], object]) -> float:
        """The median time of a run among many."""
        return self.milliseconds(burst(run)) / BURST

    def captured(self, run: Callable[[], object]) -> Callable[[], None]:
        """What a function starts, as it is: the kernels' default stream cannot be captured."""

        def start() -> None:
            run()

        return start

    def synchronise(self) -> None:
        """Waits for everything that was started."""
        self._cupy.cuda.runtime.deviceSynchronize()

    def copy_milliseconds(self, size: int) -> float:
        """The time of a copy within the card's memory."""
        source, target = (self._cupy.zeros(size, np.uint8) for _ in range(2))
        return self.burst_milliseconds(lambda: self._cupy.copyto(target, source))

    def matmul_milliseconds(self, rows: int, depth: int, columns: int) -> float:
        """The time of matmul."""
        left, right = (self._cupy.ones(shape, np.float16) for shape in ((rows, depth), (depth, columns)))
        return self.burst_milliseconds(lambda: self._cupy.matmul(left, right))

    def attention_milliseconds(self, heads: int, queries: int, keys: int, width: int) -> float | None:  # noqa: ARG002
        """``None``: CuPy has none."""
        return None

    def conv_milliseconds(self, size: int, channels: int) -> float | None:  # noqa: ARG002
        """``None``: CuPy has none."""
        return None


def find_card() -> Card:
    """The first CUDA card, by PyTorch, or by CuPy where that does not reach one.

    Raises:
        EngineMissingError: neither does; says why.
    """
    try:
        return TorchCard()
    except EngineMissingError as torch_says:
        try:
            return CupyCard()
        except EngineMissingError as cupy_says:
            raise EngineMissingError(f"{torch_says} Without torch: {cupy_says}") from cupy_says
